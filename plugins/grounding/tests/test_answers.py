"""Plain answers to what tools said: right ones pass in whatever words, wrong ones do not, however alike they look."""

from __future__ import annotations

import pytest

from locus_plugin_grounding import GroundingEvaluator
from locus_plugin_grounding.evidence import Corpus
from locus_plugin_grounding.rules import Standing, find

LAMPS = "order 4711: 2 desk lamps, 84.50 dollars, shipped on 2026-05-04, card [redacted: card]"
ORDERS = (
    "order 4711: 2 desk lamps, 84.50 dollars, shipped on 2026-05-04\n"
    "order 4712: 1 chair, 20 dollars, shipped on 2026-05-09"
)
ONE = '{"price_usd": 84.5, "status": "shipped"}'
RECORD = (
    '{"id": 4711, "item": "desk lamp", "price_usd": 84.5, "shipping_usd": 4.9, "weight_kg": 3, "reserved": 12,'
    ' "ordered_on": "2026-05-01", "shipped_on": "2026-05-04", "carrier": "DHL", "gift": false}'
)
RECORDS = (
    '[{"id": 4711, "price": 84.5, "currency": "USD", "status": "shipped", "shipped_on": "2026-05-04"},'
    ' {"id": 4712, "price": 20, "currency": "USD", "status": "open", "shipped_on": null}]'
)
FLIGHT = '{"flight": "AA-181", "from": "Berlin", "to": "Paris", "departs": "11:20", "price": "120 EUR", "seats": 3}'
WEATHER = '{"city": "Paris", "temperature_c": 20, "humidity": 60, "wind_kmh": 12}'
HOTELS = (
    '[{"hotel": "Ritz", "price": "120 EUR", "rating": 4.5, "free_rooms": 3},'
    ' {"hotel": "Astor", "price": "90 EUR", "rating": 4.1, "free_rooms": 0}]'
)
PROSE = "The 2 desk lamps of order 4711 cost 84.50 dollars. They were shipped with DHL on 4 May 2026 and not insured."


def standing(claim: str, evidence: str) -> Standing:
    corpus = Corpus()
    corpus.add(evidence)
    return find(claim, corpus).standing


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("Order 4711 was shipped on 2026-05-04 and cost 84.50 dollars.", LAMPS),
        ("Order 4711 was shipped on May 4, 2026, and it cost $84.50.", LAMPS),
        ("The order was shipped on May 4th, 2026, and cost 84.50 dollars.", LAMPS),
        ("It cost 84.50 dollars.", LAMPS),
        ("2 desk lamps were shipped on 4 May 2026.", LAMPS),
        ("Two desk lamps were shipped on the 4th of May.", LAMPS),
        ("The total price is $84.50.", LAMPS),
        ("The total amount of order 4711 is 84.5 USD.", LAMPS),
        ("The order costs USD 84.50.", LAMPS),
        ("The cost was US$84.50 in total.", LAMPS),
        ("According to the system, order number 4711 contains 2 desk lamps.", LAMPS),
        ("Order #4711: 2 desk lamps, $84.50, shipped on May 4th.", LAMPS),
        ("The order (4711) was shipped on 2026-05-04.", LAMPS),
        ("The date of shipping is 2026-05-04.", LAMPS),
        ("Your order 4711 has been shipped on May 4, 2026.", LAMPS),
        ("Order 4712 cost 20 dollars and was shipped on May 9.", ORDERS),
        ("Order 4711 cost $84.50 and order 4712 cost $20.", ORDERS),
        ("It costs 84.50 dollars and has been shipped.", ONE),
        ("The price is $84.50 and the status is shipped.", ONE),
        ("The status is shipped.", ONE),
        ("Order 4711 costs 84.50 dollars.", RECORD),
        ("The desk lamp weighs 3 kg.", RECORD),
        ("It weighs 3000 g.", RECORD),
        ("Shipping costs $4.90.", RECORD),
        ("It was ordered on May 1st and shipped on May 4th by DHL.", RECORD),
        ("12 desk lamps are reserved.", RECORD),
        ("The desk lamp is not a gift.", RECORD),
        ("Order 4712 costs 20 USD and has not been shipped.", RECORDS),
        ("Order 4711 costs 84.50 USD, and order 4712 costs 20 USD.", RECORDS),
        ("Flight AA-181 departs at 11:20 and costs 120 euros.", FLIGHT),
        ("The flight from Berlin to Paris costs \u20ac120.", FLIGHT),
        ("There are 3 seats left.", FLIGHT),
        ("It is 20 degrees in Paris.", WEATHER),
        ("The humidity in Paris is 60%.", WEATHER),
        ("The Ritz costs 120 euros and the Astor 90 euros.", HOTELS),
        ("The Astor has no free rooms.", HOTELS),
        ("The lamps cost $84.50.", PROSE),
        ("They were shipped with DHL on May 4th, 2026.", PROSE),
        ("They were not insured.", PROSE),
    ],
)
def test_a_plain_right_answer_is_grounded(claim: str, evidence: str) -> None:
    assert standing(claim, evidence) is Standing.GROUNDED


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        # another number, date or currency
        ("Order 4711 was shipped on 2026-05-04 and cost 84.00 dollars.", LAMPS),
        ("It cost 845.00 dollars.", LAMPS),
        ("It cost 4711 dollars.", LAMPS),
        ("The total is 2 dollars.", LAMPS),
        ("Order 4711 was shipped on May 5, 2026, and it cost $84.50.", LAMPS),
        ("The order was shipped on May 4th, 2025.", LAMPS),
        ("3 desk lamps were shipped on 4 May 2026.", LAMPS),
        ("It cost 84.50 euros.", LAMPS),
        ("It cost \u00a584.50.", LAMPS),
        ("It cost 84.50 Swiss francs.", LAMPS),
        ("It weighs 84.50 kg.", LAMPS),
        ("It costs 84.50 euros.", RECORDS),
        ("It was shipped on 2026-05-01.", RECORD),
        # another thing
        ("Order 4712 was shipped on 2026-05-04 and cost 84.50 dollars.", LAMPS),
        ("Invoice 4711 was shipped on 2026-05-04.", LAMPS),
        ("2 desk chairs were shipped on 4 May 2026.", LAMPS),
        ("Order 4711 cost 20 dollars.", ORDERS),
        ("Order 4711 was shipped on May 4 and cost 20 dollars.", ORDERS),
        ("Order 4711 cost 84.50 dollars and was shipped on May 9.", ORDERS),
        ("Order 4712 was shipped on 2026-05-04.", ORDERS),
        ("Order 4711 cost $20 and order 4712 cost $84.50.", ORDERS),
        ("Order 4712 costs 84.50 USD.", RECORDS),
        ("Order 4712 costs 20 USD and was shipped on 2026-05-04.", RECORDS),
        ("Order 4711 cost 20 dollars.", "order 4711: 84.50 dollars; order 4712: 20 dollars"),
        # another property
        ("It was returned on 2026-05-04.", LAMPS),
        ("The 2 desk lamps cost 84.50 dollars each.", LAMPS),
        ("The wind is 20 km/h.", WEATHER),
        ("It is 60 degrees in Paris.", WEATHER),
        ("It costs 4.90 dollars.", RECORD),
        ("The desk lamp costs 3 dollars.", RECORD),
        ("12 are available.", RECORD),
        ("Shipping costs $84.50.", RECORD),
        ("It was delivered on 2026-05-04.", LAMPS),
        ("The Ritz costs 120 EUR and has a rating of 4.1.", HOTELS),
        ("The Ritz costs 90 euros and the Astor costs 120.", HOTELS),
        # denied
        ("The Ritz has no free rooms.", HOTELS),
        ("Order 4711 was not shipped on 2026-05-04.", LAMPS),
        ("It did not cost 84.50 dollars.", LAMPS),
        ("It costs 84.50 dollars and has not been shipped.", ONE),
        ("Order 4712 costs 20 USD and has been shipped.", RECORDS),
        ("The desk lamp is a gift.", RECORD),
        ("They were insured.", PROSE),
        # made up beside what is right
        ("Order 4711 was shipped on 2026-05-04 and it arrives tomorrow.", LAMPS),
        ("Order 4711 was shipped on 2026-05-04 and arrived.", LAMPS),
        ("Order 4711 was shipped on 2026-05-04 by DHL.", LAMPS),
        ("It cost 84.50 dollars, and the card was refunded.", LAMPS),
        ("It cost 84.50 dollars including 10 dollars for shipping.", LAMPS),
        ("Order 4711 is available.", LAMPS),
        ("It is available.", ONE),
        ("The flight from Berlin to Rome costs \u20ac120.", FLIGHT),
    ],
)
def test_an_answer_that_is_wrong_in_one_thing_is_not(claim: str, evidence: str) -> None:
    assert standing(claim, evidence) not in (Standing.GROUNDED, Standing.COMPLEMENTARY)


def test_what_a_tool_was_asked_about_is_a_bare_number_too() -> None:
    corpus = Corpus()
    corpus.add(ONE, tool="get_order", arguments={"number": 4711})
    assert find("Order 4711 has been shipped and costs $84.50.", corpus).standing is Standing.GROUNDED
    assert find("Order 4712 has been shipped and costs $84.50.", corpus).standing is not Standing.GROUNDED


def test_a_plain_right_answer_does_not_go_back() -> None:
    text = "Order 4711 was shipped on May 4th, 2026. It cost $84.50. It consists of 2 desk lamps."
    result = GroundingEvaluator().evaluate(text, [LAMPS])
    assert (result.score, result.requires_replan) == (1.0, False)


@pytest.mark.parametrize("evidence", [ORDERS, RECORDS])
@pytest.mark.parametrize("said", ["It costs {} dollars.", "Its price is ${}.", "The total is {} USD."])
def test_it_is_what_the_sentence_before_named(said: str, evidence: str) -> None:
    def doubtful(price: str) -> tuple[str, ...]:
        text = f"Order 4711 was shipped on May 4. {said.format(price)}"
        return GroundingEvaluator().evaluate(text, [evidence]).ungrounded_claims

    assert doubtful("84.50") == ()
    assert doubtful("20") == (said.format("20"),)


def test_it_may_be_in_a_result_that_names_nothing() -> None:
    text = "Order 4711 was shipped on May 4. It costs 84.50 dollars."
    result = GroundingEvaluator().evaluate(text, ["order 4711: shipped on 2026-05-04", '{"price_usd": 84.5}'])
    assert result.score == 1.0
