"""What a super-step costs, with LangGraph beside it."""
