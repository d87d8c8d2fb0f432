"""A live intent as part of a later release will leave it: nothing in this one can issue it through a door."""

import orjson

from operations.connectivity.plans import TEST_PLANS
from operations.ledger.esims import EsimProfile, seal_esim_profile
from storage.intents import IntentRow, insert_intent
from tests.network_facts import ICCID
from tests.world import World


async def live_intent(world: World, organisation: str, *, iccid: str = ICCID, data_mb: int = 1000, unlimited: bool = False) -> str:
    id = world.ids.new("cni_")
    plan = {**TEST_PLANS["test_eu_1gb"], "id": "cnp_live", "livemode": True, "data_mb": 0 if unlimited else data_mb, "unlimited": unlimited}
    profile = EsimProfile(iccid, "LPA:1$smdp.example$LIVE", "smdp.example", "LIVE")
    sealed = seal_esim_profile(profile, keyring=world.pipeline.deps.keyring, organisation=organisation, intent=id)
    row = IntentRow(
        id, organisation, "succeeded", 1, "cnp_live", orjson.dumps(plan).decode(), "{}", iccid, sealed, None, int(world.clock.now())
    )
    await world.store.write(insert_intent, row=row, event=None, ids=world.ids)
    return id
