"""Every route of the page."""

from fastapi import APIRouter

from api.web import assets, catalogue, login, plan_pages, plan_questions

router = APIRouter(include_in_schema=False)
router.include_router(assets.router)
router.include_router(catalogue.router)
router.include_router(plan_pages.router)
router.include_router(plan_questions.router)
router.include_router(login.router)
