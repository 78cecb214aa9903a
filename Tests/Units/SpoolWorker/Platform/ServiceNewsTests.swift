import Testing

@testable import SpoolWorker

@Suite struct ServiceNewsTests {
  @Test func `it is ready once, and then stops once`() {
    var news = ServiceNews(watchdog: nil)
    #expect(news.due(.ready, "a", at: 0) == ["READY=1", "STATUS=a"])
    #expect(news.due(.ready, "a", at: 10_000) == [])
    #expect(news.due(.stopping, "b", at: 10_001) == ["STOPPING=1", "STATUS=b"])
    #expect(news.due(.stopping, "b", at: 20_000) == [])
  }

  @Test func `the status is told at most once in five seconds, and then the last one`() {
    var news = ServiceNews(watchdog: nil)
    _ = news.due(.ready, "a", at: 0)
    #expect(news.due(.ready, "b", at: 4000) == [] && news.untilDue(at: 4000) == 1000)
    #expect(news.due(.ready, "c", at: 5000) == ["STATUS=c"])
    #expect(news.due(.ready, "c", at: 10_000) == [])
    // It sleeps until somebody wakes it: nothing changes meanwhile.
    #expect(news.untilDue(at: 10_000) == .max)
  }

  @Test func `a sign of life comes at half the time`() {
    var news = ServiceNews(watchdog: 2_000_000)
    #expect(news.due(.ready, "a", at: 0) == ["READY=1", "WATCHDOG=1", "STATUS=a"])
    #expect(news.untilDue(at: 400) == 600 && news.due(.ready, "a", at: 999) == [])
    #expect(news.due(.ready, "a", at: 1000) == ["WATCHDOG=1"])
    // Also while it stops, and late after a sleep.
    #expect(news.due(.stopping, "a", at: 9000) == ["STOPPING=1", "WATCHDOG=1"])
    #expect(news.untilDue(at: 10_500) == 0)
  }

  @Test func `what is said once is kept until it can be sent, and of the rest the last`() {
    let unsent = ["READY=1", "WATCHDOG=1", "STATUS=a", "WATCHDOG=1", "STOPPING=1", "WATCHDOG=1", "STATUS=c"]
    #expect(ServiceNews.worthKeeping(of: unsent) == ["READY=1", "STOPPING=1", "WATCHDOG=1", "STATUS=c"])
  }
}
