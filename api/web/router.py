"""Every route of the page."""

from fastapi import APIRouter

from api.web import assets, catalogue

router = APIRouter(include_in_schema=False)
router.include_router(assets.router)
router.include_router(catalogue.router)
