import Spool
import TestSupport
import Testing
import Transfer

@testable import SpoolWorker

/// Which entries of a list become jobs, and which jobs.
@Suite struct NewEntriesTests {
  private let list: URLParts

  init() throws {
    try Libcurl.load()
    list = try URLParts("https://u:p@feeds.example/pod/feed.xml?key=secret")
  }

  private func entry(_ id: Int, days: Int? = nil, url: String? = nil) -> FeedEntry {
    FeedEntry(
      identity: "\(id)", date: days.map { Timestamp(seconds: Int64($0) * 86_400) },
      urls: [url ?? "https://media.example/\(id).mp3"])
  }

  private func order(_ lines: String = "") -> JobRequest {
    let text = "url: https://feeds.example/pod/feed.xml\nevery: 6h\n\(lines)"
    return Array(text.utf8).withUnsafeBytes { JobText($0) }.request
  }

  private func new(_ entries: [FeedEntry], known: [FeedEntry]?, _ lines: String = "") -> NewEntries {
    NewEntries(
      keys: entries.map(\.key), files: entries.compactMap { OfferedFile($0, from: [list]) },
      order: order(lines).standing, known: known.map { $0.map(\.key) })
  }

  @Test(arguments: [
    ("", ["5.mp3"]), ("first: 2\n", ["4.mp3", "5.mp3"]), ("first: 0\n", []),
    ("first: all\n", ["1.mp3", "2.mp3", "3.mp3", "4.mp3", "5.mp3"]),
    ("first: 9\nmatch: [1-3].*\n", ["1.mp3", "2.mp3", "3.mp3"]), ("match: [1-3].*\n", ["3.mp3"]),
  ])
  func `the newest by their dates count as new at first`(lines: String, names: [String]) {
    // In disorder.
    let feed = [3, 1, 5, 2, 4].map { entry($0, days: $0) }
    let found = new(feed, known: nil, lines)
    #expect(found.files.map(\.name) == names && found.seen == feed.map(\.key))
  }

  @Test func `without all dates, the list's order counts`() {
    let feed = [entry(1, days: 1), entry(2), entry(3, days: 3)]
    #expect(new(feed, known: nil).files.map(\.name) == ["1.mp3"])
    #expect(new(feed, known: []).files.map(\.name) == ["1.mp3", "2.mp3", "3.mp3"])
  }

  @Test func `entries that are known are not new, whatever else of them changes`() {
    let known = [entry(1, days: 1), entry(2, days: 2)]
    let changed = [entry(2, days: 9, url: "https://elsewhere.example/x.mp3"), entry(3, days: 3), entry(1)]
    let found = new(changed, known: known)
    #expect(found.files.map(\.name) == ["3.mp3"] && found.seen == changed.map(\.key))
  }

  @Test func `of one identity, the first that matches is fetched`() {
    let feed = [
      entry(1, url: "https://h/a.torrent"), entry(1, url: "https://h/a.mp3"), entry(1, url: "https://h/a.ogg"),
    ]
    #expect(new(feed, known: []).files.map(\.name) == ["a.torrent"])
    #expect(new(feed, known: [], "match: *.[mo][pg][3g]\n").files.map(\.name) == ["a.mp3"])
    #expect(new(feed, known: [], "match: *.flac\n") == new(feed, known: feed))
  }

  @Test func `what left the list is remembered, within bounds`() {
    let all = (0..<12_500).map { entry($0) }
    let found = new(Array(all[..<10_500]), known: Array(all[10_000...]))
    #expect(found.seen.count == 10_500 + NewEntries.margin)
    #expect(Set(found.seen).isSuperset(of: all[10_500..<11_500].map(\.key)))
    // A list that is empty for once.
    let known = Array(all[..<NewEntries.fewestSeen])
    #expect(new([], known: known).seen == known.map(\.key))
    #expect(new(Array(known.suffix(500)), known: known).files.isEmpty)
  }

  @Test func `a month of changes: each entry is fetched once`() {
    var random = SeededGenerator(seed: 1)
    var seen: [String]?
    var fetched: [String] = []
    // A window of twenty entries that moves on, in any order, some missing for a while, some twice.
    for check in 0..<(30 * 24) {
      var feed = ((check / 5)..<(check / 5 + 20)).map { entry($0, days: Bool.random(using: &random) ? $0 : $0 - 7) }
      feed.shuffle(using: &random)
      if check % 11 == 3 { feed.removeLast(7) }
      if check % 17 == 5 { feed += feed.prefix(3) }
      if check % 31 == 7 { feed = [] }
      let found = NewEntries(
        keys: feed.map(\.key), files: feed.compactMap { OfferedFile($0, from: [list]) },
        order: order("first: all\n").standing, known: seen)
      fetched += found.files.map(\.name)
      seen = found.seen
    }
    #expect(fetched.count == Set(fetched).count)
    // Of the last ones, some may never have been seen.
    #expect(Set(fetched).isSuperset(of: (0..<(30 * 24 / 5)).map { "\($0).mp3" }))
  }

  // MARK: jobs

  private func job(
    _ entry: FeedEntry, among more: [FeedEntry] = [], _ lines: String = "", existing: Set<String> = []
  ) throws -> (request: JobRequest, name: String) {
    let files = ([entry] + more).compactMap { OfferedFile($0, from: [list]) }
    let order = try #require(JobName(FileName("pod")))
    let jobs = OrderJobs(self.order(lines), as: order, among: files, hosts: ["feeds.example", "feeds.example"])
    let (text, name) = jobs.job(for: files[0]) { existing.contains($0) }
    let read = Array(text.utf8).withUnsafeBytes { JobText($0) }
    #expect(read.defect == nil && read.request.jobDefect == nil)
    return (read.request, name.display)
  }

  @Test func `a job has the order's keys, and a name of the entry's identity`() throws {
    let found = try job(entry(7), "output: pods/\nattempts: 3\nfirst: 2\nmatch: *\nroot: music\n")
    #expect(found.request.text == "url: https://media.example/7.mp3\noutput: pods/7.mp3\nroot: music\nattempts: 3\n")
    #expect(found.name == "pod-\(entry(7).key)")
    #expect(try job(entry(7, url: "https://other.example/x")).name == found.name)
  }

  @Test(arguments: [
    ("../x/a.mp3", "https://feeds.example/x/a.mp3"), ("a.mp3", "https://feeds.example/pod/a.mp3"),
    ("//cdn.example/a.mp3", "https://cdn.example/a.mp3"), ("/a.mp3?t=1", "https://feeds.example/a.mp3?t=1"),
    ("https://h/a b.mp3", "https://h/a%20b.mp3"), ("https://x:y@h/a.mp3#part", "https://h/a.mp3"),
  ])
  func `URLs are relative to the list's, without its query and its login`(url: String, whole: String) throws {
    #expect(try job(entry(1, url: url)).request.urls.map(\.text) == [whole])
  }

  @Test func `the list does not choose who gets the header fields`() throws {
    let lines = "header: Authorization: Bearer 1\nheader@media.example: X-A: 2\n"
    #expect(
      try job(entry(1), lines).request.headers.map { "\($0.host ?? "any") \($0.text)" } == [
        "feeds.example Authorization: Bearer 1", "media.example X-A: 2",
      ])
  }

  /// - Parameter name: nil where the URL's own cannot be a file's.
  @Test(arguments: [
    ("https://h/..%2F..%2Fetc%2Fpasswd", nil), ("https://h/.hidden", "hidden"), ("https://h/", nil),
    ("https://h/%1B%5Bm", nil), ("https://h/-rf", "rf"),
  ])
  func `a URL names nothing but a file in the order's directory`(url: String, name: String?) throws {
    let output = try job(entry(1, url: url), "output: d/\n").request.output?.text
    #expect(output == "d/\(name ?? "entry-\(entry(1).key)")")
  }

  @Test func `a path of the list that leads elsewhere is no entry`() {
    for name in ["../a", "/etc/passwd", "a//b", ""] {
      #expect(OfferedFile(FeedEntry(identity: "1", name: name, urls: ["a"]), from: [list]) == nil)
    }
    for url in ["magnet:?xt=1", "file:///etc/passwd", "javascript:x", "http://"] {
      #expect(OfferedFile(FeedEntry(identity: "1", urls: [url]), from: [list]) == nil)
    }
  }

  @Test func `a name that another entry or file has gets the entry's digits`() throws {
    let (one, two) = (entry(1, url: "https://h/1/audio.tar.gz"), entry(2, url: "https://h/2/audio.tar.gz"))
    let marked = "audio~\(one.key).tar.gz"
    #expect(try job(one, among: [two]).request.output?.text == marked)
    #expect(try job(one, existing: ["audio.tar.gz"]).request.output?.text == marked)
    #expect(try job(one, "overwrite: yes\n", existing: ["audio.tar.gz"]).request.output?.text == "audio.tar.gz")
    // The same entry, with another file.
    #expect(try job(one, among: [entry(1, url: "https://i/audio.tar.gz")]).request.output?.text == "audio.tar.gz")
  }

  @Test func `a new version of a docset replaces the old one`() throws {
    var docset = FeedEntry(identity: "Lua.tgz 2", urls: ["http://a/Lua.tgz", "http://b/Lua.tgz"])
    docset.replaces = true
    let found = try job(docset, existing: ["Lua.tgz"]).request
    #expect(found.output?.text == "Lua.tgz" && found.overwrite == true && found.urls.count == 2)
    #expect(try job(docset, "overwrite: no\n").request.overwrite == false)
  }

  // MARK: times

  private let now = Timestamp(seconds: 1_000_000)

  @Test func `the next check`() {
    #expect(OrderSchedule.next(after: now, every: 60, now: now + 5) == now + 60)
    // A check that took longer than the interval.
    #expect(OrderSchedule.next(after: now, every: 1, now: now + 5) == now + 6)
  }

  @Test(arguments: [
    (Failure(.connect, ""), 1, 60, 60), (Failure(.connect, ""), 3, 60, 240), (Failure(.connect, ""), 99, 60, 4000),
    (Failure(.noNetwork, ""), 99, 60, 60), (Failure(.http, "", status: 404), 1, 21_600, 21_600),
    (Failure(.http, "", status: 404), 20, 60, 4000), (Failure(.http, "", status: 503, retryAfter: 9000), 1, 60, 9000),
    (Failure(.badEntries, ""), 2, 86_400, 120),
  ])
  func `a failed check is tried again, more and more rarely`(failure: Failure, failures: Int, every: Int, wait: Int) {
    #expect(
      OrderSchedule.afterFailure(failure, failures: failures, every: every, now: now, jitter: 0.5)
        == .wait(until: now + Int64(wait)))
  }

  @Test(arguments: [FailureCode.malformed, .protocol, .expired, .killsWorker])
  func `an order that cannot go on is given up`(code: FailureCode) {
    #expect(OrderSchedule.afterFailure(Failure(code, ""), failures: 1, every: 1, now: now, jitter: 0) == .giveUp)
  }
}
