"""The contestants' names, as they stand in samples and tables."""

OURS = "this service"
HANDWRITTEN = "Starlette + msgspec by hand"
TUNED = "FastAPI tuned"
TUTORIAL = "FastAPI tutorial + SQLModel"
LOWLEVEL = "bare SDK lowlevel server"
FASTMCP = "FastMCP native"
BARE = "bare import"
