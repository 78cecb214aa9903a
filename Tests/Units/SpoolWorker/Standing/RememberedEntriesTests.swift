import Spool
import TestSupport
import Testing
import Transfer

@testable import SpoolWorker

/// What a standing order remembers of entries that could not be fetched, failed, or changed what they are known by.
@Suite struct RememberedEntriesTests {
  private let list: URLParts

  init() throws {
    try Libcurl.load()
    list = try URLParts("https://feeds.example/feed.xml")
  }

  private func entry(_ id: String, _ url: String, day: Int64? = nil) -> FeedEntry {
    FeedEntry(identity: id, date: day.map { Timestamp(seconds: $0 * 86_400) }, urls: [url])
  }

  private func check(
    _ entries: [FeedEntry], _ known: [String]?, first: Int = .max, match: String? = nil,
    _ job: EntryJob = .underway
  ) -> NewEntries {
    var order = StandingOrder()
    (order.first, order.match) = (first, match)
    return NewEntries(entries, from: [list], order: order, known: known) { _, _ in job }
  }

  @Test(arguments: ["http://127.0.0.1:99999/1.mp3", "magnet:?xt=urn:btih:70EA1254/1.mp3", "http://:80/1.mp3"])
  func `an entry that cannot be fetched is told, and new when it can be`(url: String) {
    var found = check([entry("1", url), entry("2", "/2.mp3")], nil)
    #expect(found.files.map(\.name) == ["2.mp3"] && found.problems.count == 1 && found.seen.count == 1)
    found = check([entry("1", "/1.mp3"), entry("2", "/2.mp3")], found.seen)
    #expect(found.files.map(\.name) == ["1.mp3"] && found.problems.count == 0)
  }

  @Test func `of an entry with alternatives, one that can be fetched is enough`() {
    let found = check([entry("1", "magnet:?x"), entry("1", "/1.mp3")], nil)
    #expect(found.files.map(\.name) == ["1.mp3"] && found.problems.count == 0)
  }

  @Test func `what is not wanted is not told`() {
    let feed = [entry("1", "ed2k://x/1.torrent"), entry("2", "ed2k://x/2.mp3")]
    #expect(check(feed, nil, match: "*.mp3").problems.count == 1)
    // Older than the first ones.
    let dated = [entry("1", "ed2k://1", day: 1), entry("2", "/2", day: 2), entry("3", "ed2k://3", day: 3)]
    let found = check(dated, nil, first: 1)
    #expect(found.files.map(\.name) == ["2"] && found.problems.count == 1)
    #expect(found.seen.map { String($0.prefix(16)) } == [dated[0].key, dated[1].key])
  }

  @Test func `a failed entry with another link is tried there`() {
    let old = check([entry("1", "/old.mp3?key=1")], nil)
    let stuck = EntryJob.stuck([FeedEntry.link("https://feeds.example/old.mp3")])
    // The query may be a signature.
    #expect(check([entry("1", "/old.mp3?key=2")], old.seen, stuck).relinked.isEmpty)
    let changed = [entry("1", "/new.mp3")]
    #expect(check(changed, old.seen, stuck).relinked.map(\.name) == ["new.mp3"])
    // As an earlier version remembers it.
    #expect(check(changed, [entry("1", "").key], stuck).relinked.map(\.name) == ["new.mp3"])
    #expect(check([entry("1", "ed2k://x")], old.seen, stuck).relinked.isEmpty)
    // The job was in use.
    var kept = check(changed, old.seen, stuck)
    #expect(kept.seen != old.seen)
    kept.keepLinks(of: [changed[0].key])
    #expect(kept.seen == old.seen)
  }

  @Test func `an entry that was cancelled comes again with another link only`() {
    let old = check([entry("1", "/old.mp3")], nil)
    let still = check([entry("1", "/old.mp3")], old.seen, .gone)
    #expect(still.files.isEmpty && still.seen == old.seen)
    #expect(check([entry("1", "/new.mp3")], still.seen, .gone).files.map(\.name) == ["new.mp3"])
    #expect(check([entry("1", "/new.mp3")], still.seen, .underway).files.isEmpty)
    // Once it is done, its link does not matter.
    let done = NewEntries.settled(old.seen) { _, isOpen in isOpen ? .done : .underway }
    #expect(done == [entry("1", "").key])
    #expect(check([entry("1", "/new.mp3")], done, .gone).files.isEmpty)
  }

  @Test func `an entry that shares its identity for a while is the same`() {
    let (a, b) = (entry("show", "https://feeds.example/a.mp3"), entry("show", "https://feeds.example/b.mp3"))
    let shared = [a, b].map { $0.sharingIdentity(with: $0.urls[0]) }
    let alone = check([a], nil)
    let both = check(shared, alone.seen)
    #expect(both.files.map(\.name) == ["b.mp3"])
    #expect(check([b], both.seen).files.isEmpty && check([a], both.seen).files.isEmpty)
  }

  @Test func `of entries that share an identity, one that differs in the query alone is new`() {
    let (a, b) = (entry("show", "https://feeds.example/get?ep=1"), entry("show", "https://feeds.example/get?ep=2"))
    let shared = [a, b].map { $0.sharingIdentity(with: $0.urls[0]) }
    let both = check(shared, check([a], nil).seen)
    #expect(both.files.contains { $0.urls == b.urls })
    #expect(check(shared, both.seen).files.isEmpty)
  }

  @Test func `what is left out is told again only if it is more, or another thing`() {
    func problems(_ reasons: [String], count: Int) -> ListProblems {
      var found = ListProblems()
      for reason in reasons { found.note(reason) }
      for _ in reasons.count..<count { found.note("") }
      return found
    }
    let first = problems(["line 3: x", "line 9: y", "z"], count: 5)
    #expect(first.isNews(after: ListProblems()) && !first.isNews(after: first) && !ListProblems().isNews(after: first))
    #expect(!problems(["line 4: x", "line 10: y", "z"], count: 5).isNews(after: first))
    #expect(problems(["line 3: x", "line 9: y", "z"], count: 6).isNews(after: first))
    #expect(problems(["line 3: x", "line 9: other", "z"], count: 5).isNews(after: first))
    let line = JournalLine.checked(.init(seconds: 0), .init(entries: 1, new: 0, version: nil, problems: first))
    #expect(Fields(parsing: line.fields.text)?.problems == first)
  }
}
