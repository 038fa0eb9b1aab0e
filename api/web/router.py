"""Every route of the page."""

from fastapi import APIRouter

from api.web import assets

router = APIRouter(include_in_schema=False)
router.include_router(assets.router)
