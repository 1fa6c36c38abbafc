"""The peer of a web crawl: the shortest Scrapy spider that follows every link of a site."""

from __future__ import annotations

SPIDER = """
import json, sys, time
import scrapy
from scrapy.crawler import CrawlerProcess
class Site(scrapy.Spider):
    name = "site"
    pages = 0
    def parse(self, response):
        if not Site.pages:
            Site.begun, Site.cpu = time.perf_counter(), time.process_time()
        Site.pages += 1
        links = response.css("a::attr(href)").getall()
        yield {"url": response.url, "size": len(response.body), "links": links}
        for link in links:
            yield response.follow(link)
url, pages, requests = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
process = CrawlerProcess({
    "LOG_ENABLED": False, "TELNETCONSOLE_ENABLED": False, "ROBOTSTXT_OBEY": True, "DOWNLOAD_DELAY": 0,
    "CONCURRENT_REQUESTS": requests, "CONCURRENT_REQUESTS_PER_DOMAIN": requests,
    "CLOSESPIDER_PAGECOUNT": pages,
})
process.crawl(Site, start_urls=[url + "/"])
process.start()
took, cpu = time.perf_counter() - Site.begun, time.process_time() - Site.cpu
print(json.dumps([Site.pages / took, cpu / Site.pages * 1e6]))
"""
"""The spider's program. Arguments: the site's URL, the number of pages, the number of concurrent requests. It
measures from the first page on and prints a JSON list: pages per second, CPU time per page in microseconds.
Each page is yielded as an item, as a crawl that stores pages would do."""
