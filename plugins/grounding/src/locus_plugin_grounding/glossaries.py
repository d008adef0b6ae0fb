"""The closed-class words of German, French, Spanish and Chinese, by the English word that does the same.

What is before an empty name carries no fact. Of a Chinese text the longest word counts first; what is left is content.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "CHINESE",
    "CHINESE_NAMES",
    "ENGLISH_ONLY",
    "FRENCH",
    "FRENCH_ONLY",
    "GERMAN",
    "GERMAN_ONLY",
    "SPANISH",
    "SPANISH_ONLY",
]


def _read(lines: str) -> dict[str, str]:
    """Words by what they become: ``not: nicht kein``; what is before an empty name is dropped."""
    found: dict[str, str] = {}
    for line in filter(None, map(str.strip, lines.splitlines())):
        english, _, words = line.partition(":")
        found.update(dict.fromkeys(words.casefold().split(), english.strip()))
    return found


GERMAN = _read(
    """
    : der die das den dem des ein eine einen einem einer eines ist sind bin war waren wurde wurden worden hat
    : haben hatte
    : hatten sein seine seinen ihr ihre ihren ihrer es er sie ich wir man mich mir uns sich am an im in ins zu
    : zum zur um
    : mit auf bei beim als wie dass da so auch schon bereits noch bitte derzeit aktuell momentan gerade jetzt
    : beträgt betragen lautet lauten liegt gibt steht stehen liegen befindet befinden diese dieser dieses diesen
    : diesem welche welcher
    : ja unser unsere ihnen laut gemäß nun also dort hier wobei
    not: nicht kein keine keinen keinem keiner keines nie niemals niemand niemanden niemandem
    not: nichts nirgends nirgendwo weder
    not: keinerlei keinesfalls keineswegs mitnichten kaum
    without: ohne
    except: außer ausgenommen
    missing: fehlt fehlen fehlte fehlten
    lacks: entbehrt entbehrte
    incomplete: unvollständig unvollständige unvollständigen
    complete: vollständig vollständige vollständigen
    and: und sowie
    but: aber jedoch sondern während obwohl
    all: alle alles allen aller jeder jede jedes jeden jedem sämtliche beide beiden immer
    most: meisten meist meistens
    some: einige einigen manche manchen mehrere wenige teilweise manchmal
    only: nur ausschließlich lediglich
    may: könnte könnten vielleicht möglicherweise eventuell wahrscheinlich vermutlich womöglich voraussichtlich
    may: dürfte
    should: sollte sollten soll sollen muss müssen
    will: wird werden
    from: von vom aus ab
    to: nach bis
    failed: fehlgeschlagen gescheitert misslungen
    succeeded: erfolgreich gelungen
    rejected: abgelehnt verweigert
    accepted: akzeptiert angenommen
    closed: geschlossen
    open: offen geöffnet
    invalid: ungültig
    valid: gültig
    inactive: inaktiv
    active: aktiv
    unpaid: unbezahlt
    paid: bezahlt
    unavailable: ausverkauft
    available: verfügbar
    disabled: deaktiviert
    enabled: aktiviert
    true: wahr
    false: falsch
    costs: kostet kosten
    price: preis
    date: datum
    lasts: dauert dauer
    weighs: wiegt gewicht
    number: nummer
    count: anzahl
    high: hoch höhe
    long: lang länge
    temperature: temperatur
    together: zusammen insgesamt summe
    metres: meter metern
    km: kilometer kilometern
    hours: stunde stunden
    minutes: minute minuten
    seconds: sekunde sekunden
    days: tag tage tagen
    weeks: woche wochen
    months: monat monate monaten
    years: jahr jahre jahren
    grams: gramm
    kg: kilo kilogramm
    litres: liter litern
    percent: prozent
    dollars: dollar
    zero: null
    two: zwei
    three: drei
    four: vier
    five: fünf
    six: sechs
    seven: sieben
    eight: acht
    nine: neun
    ten: zehn
    eleven: elf
    twelve: zwölf
    """
)
FRENCH = _read(
    """
    : le la les un une des du de au aux à en dans sur avec pour par est sont était étaient été être a ont avait
    : avaient
    : avoir il elle ils elles on je nous vous ce cet cette ces son sa ses leur leurs mon ma mes votre vos notre
    : nos se
    : y que qui quoi dont où déjà encore actuellement maintenant très aussi ainsi comme si l d s j m t c qu
    : s'il oui
    : trouve situe ici là toujours
    not: ne n pas jamais aucun aucune aucuns aucunes nul nulle nuls nulles rien ni personne
    not: non guère nullement aucunement
    without: sans
    except: sauf excepté hormis
    incomplete: incomplet incomplète incomplets incomplètes
    complete: complet complète complets complètes
    and: et
    but: mais tandis alors cependant bien
    all: tous toutes tout toute chaque
    most: plupart majorité
    some: certains certaines quelques plusieurs parfois partie
    only: seulement uniquement seul seule
    may: pourrait pourraient peut-être probablement peut peuvent éventuellement
    should: devrait devraient doit doivent
    will: sera seront va vont
    from: depuis
    to: vers jusque
    failed: échoué échouée échec
    succeeded: réussi réussie succès
    rejected: refusé refusée refusés refusées rejeté rejetée
    accepted: accepté acceptée acceptés acceptées
    closed: fermé fermée fermés fermées
    open: ouvert ouverte ouverts ouvertes
    invalid: invalide
    valid: valide valable
    inactive: inactif inactive
    active: actif active
    unpaid: impayé impayée
    paid: payé payée
    unavailable: indisponible
    available: disponible
    true: vrai
    false: faux
    costs: coûte coûtent
    price: prix coût
    date: date
    lasts: dure durée
    weighs: pèse poids
    number: numéro
    count: nombre
    high: haut hauteur
    long: longueur
    measures: mesure
    temperature: température
    together: total ensemble somme
    metres: mètre mètres
    km: kilomètre kilomètres
    hours: heure heures
    minutes: minute minutes
    seconds: seconde secondes
    days: jour jours
    weeks: semaine semaines
    months: mois
    years: an ans année années
    grams: gramme grammes
    kg: kilo kilos kilogrammes
    litres: litre litres
    percent: pour-cent
    dollars: dollar
    zero: zéro
    two: deux
    three: trois
    four: quatre
    five: cinq
    seven: sept
    eight: huit
    nine: neuf
    ten: dix
    eleven: onze
    twelve: douze
    """
)
SPANISH = _read(
    """
    : el la los las un una unos unas de del al a en con por para es son era eran fue fueron sido ser está están
    : estaba
    : estar ha han había haber hay queda quedan se le les lo su sus mi tu nuestro que quien cual cuyo ya
    : todavía aún
    : ahora actualmente muy también así como si sí esto este esta estos estas ese esa eso yo usted él ella ellos
    : encuentra aquí allí y/o
    not: no ni nunca jamás ningún ninguna ninguno nadie nada tampoco ningunos ningunas apenas
    without: sin
    except: excepto salvo
    incomplete: incompleto incompleta incompletos incompletas
    complete: completo completa completos completas
    and: y e
    but: pero sino mientras aunque
    all: todos todas todo toda cada ambos ambas siempre
    most: mayoría
    some: algunos algunas algún alguna varios varias unos pocos pocas veces parte
    only: sólo solo solamente únicamente
    may: podría podrían quizás quizá probablemente posiblemente puede pueden acaso
    should: debería deberían debe deben
    will: será serán va van
    from: desde
    to: hasta hacia
    failed: fallado fallida fallido falló fracasó
    succeeded: exitoso exitosa éxito
    rejected: rechazado rechazada denegado denegada
    accepted: aceptado aceptada
    closed: cerrado cerrada cerrados cerradas
    open: abierto abierta abiertos abiertas
    invalid: inválido inválida
    valid: válido válida
    inactive: inactivo inactiva
    active: activo activa
    unpaid: impagado impagada
    paid: pagado pagada
    unavailable: agotado agotada agotados agotadas
    available: disponible disponibles
    true: verdadero verdad
    false: falso
    costs: cuesta cuestan
    price: precio coste costo
    date: fecha
    lasts: dura duración
    weighs: pesa peso
    number: número
    count: cantidad
    high: alto altura
    long: largo longitud
    measures: mide
    temperature: temperatura
    together: total juntos juntas suma
    metres: metro metros
    km: kilómetro kilómetros
    hours: hora horas
    minutes: minuto minutos
    seconds: segundo segundos
    days: día días
    weeks: semana semanas
    months: mes meses
    years: año años
    grams: gramo gramos
    kg: kilo kilos kilogramos
    litres: litro litros
    dollars: dólar dólares
    zero: cero
    two: dos
    three: tres
    four: cuatro
    five: cinco
    six: seis
    seven: siete
    eight: ocho
    nine: nueve
    ten: diez
    eleven: once
    twelve: doce
    """
)
#: The longest first. Every other character is content, and a word by itself.
CHINESE = _read(
    """
    : 的 了 是 在 这 那 个 们 已经 已 目前 现在 就 和 与 及 以 于 着 过 把 被 由 您 你 我 他 她 它 有 吗 呢
    : 吧 啊 家 位 名 张 份
    : 件 座 班 趟 套 间 条 只 辆 次 所 请 很抱歉 抱歉 对不起 很遗憾 遗憾 不好意思 我认为 我觉得 我想
    : 据我所知 还 也 共 号 到了
    : 其 该 此 为 而 则 正在 大约 左右 进行 里 内 把
    not: 不 没有 没 未 无 并非 尚未 从未 毫无 莫 勿 差点 差点儿 险些 拒不 缺席 并未 并没 并没有 从不 不曾 未曾
    all: 所有 全部 全体 每个 每 一切 总是 始终 都
    most: 大多数 大部分 多数
    some: 部分 一些 有些 几个 若干 有时
    only: 只有 仅 仅仅
    may: 可能 也许 或许 大概 恐怕
    should: 应该 应当 必须
    will: 将会 将要 将 即将
    to: 开往 飞往 前往 驶往 到 至 往
    from: 从 自
    failed: 失败
    succeeded: 成功
    rejected: 拒绝
    accepted: 接受
    invalid: 无效
    valid: 有效
    together: 一共 总共 合计 总计
    price: 价格 售价
    number: 编号
    high: 高度
    long: 长度
    km: 公里 千米
    metres: 米
    kg: 公斤 千克
    grams: 克
    hours: 小时 个小时 钟头
    minutes: 分钟
    seconds: 秒
    days: 天
    weeks: 星期 周 个星期
    months: 个月
    years: 年
    yuan: 元 块钱 人民币
    dollars: 美元
    euros: 欧元
    percent: 百分之
    """
)

#: Words that tell a language from the others, and English from all of them.
_GERMAN_ONLY_WORDS = """
der die das den dem ein eine einen ist sind wurde wurden nicht kein keine und von nach mit für hat haben am im zur
zum ich wird auf es sie
"""
GERMAN_ONLY: Final = frozenset(_GERMAN_ONLY_WORDS.split())
_FRENCH_ONLY_WORDS = """
le la les un une des du est sont été pas ne et dans pour sur avec qui que il elle je au aux a de à
"""
FRENCH_ONLY: Final = frozenset(_FRENCH_ONLY_WORDS.split())
_SPANISH_ONLY_WORDS = """
el la los las un una de del en que es son fue está están no y por para con se su hay ha han lo al a
"""
SPANISH_ONLY: Final = frozenset(_SPANISH_ONLY_WORDS.split())
_ENGLISH_ONLY_WORDS = """
the is are was were of and to in has have not it for on at by with from i a
"""
ENGLISH_ONLY: Final = frozenset(_ENGLISH_ONLY_WORDS.split())
#: Words with a sign of the table in them that means something else there.
_CHINESE_NAMES_WORDS = """
成都 首都 都市 京都 未来 无线 不锈钢 目的 到达 到期 天气 今天 明天 昨天 周围 年度 今年 明年 去年 于是 没收 是否
"""
CHINESE_NAMES: Final = frozenset(_CHINESE_NAMES_WORDS.split())
