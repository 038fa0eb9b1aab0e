"""Every route of the page."""

from fastapi import APIRouter

from api.web import assets, buy, catalogue, changes, login, plan_pages, plan_questions, portfolio, prices, shares

router = APIRouter(include_in_schema=False)
router.include_router(assets.router)
router.include_router(catalogue.router)
router.include_router(prices.router)
router.include_router(changes.router)
router.include_router(portfolio.router)
router.include_router(buy.router)
router.include_router(plan_pages.router)
router.include_router(plan_questions.router)
router.include_router(shares.router)
router.include_router(login.router)
