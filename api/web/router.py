"""All routes of the page."""

from fastapi import APIRouter

from gpuplan.api.web import (
    accelerator_pages,
    assets,
    catalogue_page,
    changes_page,
    costs_page,
    login,
    matrix_page,
    plan_lists,
    plan_pages,
    portfolio,
    prices,
    procurement,
    saved_plan_pages,
    shares,
)

router = APIRouter(include_in_schema=False)
router.include_router(assets.router)
router.include_router(catalogue_page.router)
router.include_router(accelerator_pages.router)
router.include_router(matrix_page.router)
router.include_router(prices.router)
router.include_router(changes_page.router)
router.include_router(costs_page.router)
router.include_router(portfolio.router)
router.include_router(procurement.router)
router.include_router(plan_pages.router)
router.include_router(plan_lists.router)
router.include_router(saved_plan_pages.router)
router.include_router(shares.router)
router.include_router(login.router)
