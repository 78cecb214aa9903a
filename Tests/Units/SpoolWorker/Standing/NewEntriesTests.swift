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
    return parsed(text).request
  }

  private func new(_ entries: [FeedEntry], known: [FeedEntry]?, _ lines: String = "") -> NewEntries {
    NewEntries(entries, from: [list], order: order(lines).standing, known: known.map { $0.map(\.key) })
  }

  /// The keys of what is remembered.
  private func keys(_ found: NewEntries) -> [String] { found.seen.map { String($0.prefix(16)) } }

  @Test(arguments: [
    ("", ["5.mp3"]), ("first: 2\n", ["4.mp3", "5.mp3"]), ("first: 0\n", []),
    ("first: all\n", ["1.mp3", "2.mp3", "3.mp3", "4.mp3", "5.mp3"]),
    ("first: 9\nmatch: [1-3].*\n", ["1.mp3", "2.mp3", "3.mp3"]), ("match: [1-3].*\n", ["3.mp3"]),
  ])
  func `the newest by their dates count as new at first`(lines: String, names: [String]) {
    // In disorder.
    let feed = [3, 1, 5, 2, 4].map { entry($0, days: $0) }
    let found = new(feed, known: nil, lines)
    #expect(found.files.map(\.name) == names && keys(found) == feed.map(\.key))
  }

  @Test func `no more are fetched than are kept, and they are remembered by their age`() {
    let feed = [3, 1, 5, 2, 4].map { entry($0, days: $0) }
    let first = new(feed, known: nil, "first: all\nkeep: 2\n")
    #expect(first.files.map(\.name) == ["4.mp3", "5.mp3"])
    #expect(keys(first) == [5, 4, 3, 2, 1].map { entry($0).key })
    #expect(new(feed, known: [feed[1]], "keep: 3\n").files.map(\.name) == ["3.mp3", "4.mp3", "5.mp3"])
  }

  @Test func `in a directory that the list gives, the URL names the file`() {
    var entry = entry(1)
    entry.name = "sets/"
    #expect(new([entry], known: nil, "match: 1.*\n").files.map(\.name) == ["sets/1.mp3"])
  }

  @Test func `without all dates, the list's order counts`() {
    let feed = [entry(1, days: 1), entry(2), entry(3, days: 3)]
    #expect(new(feed, known: nil).files.map(\.name) == ["1.mp3"])
    #expect(new(feed, known: []).files.map(\.name) == ["1.mp3", "2.mp3", "3.mp3"])
  }

  /// Those with the oldest first have it.
  @Test func `what does not match needs no date, and changes no order`() {
    let feed = [entry(1, days: 1), entry(2, url: "https://media.example/cover.jpg"), entry(3, days: 3)]
    let found = new(feed, known: [feed[0], feed[1]], "keep: 1\nmatch: *.mp3\n")
    #expect(found.files.map(\.name) == ["3.mp3"] && keys(found).first == feed[2].key)
  }

  @Test func `entries that are known are not new, whatever else of them changes`() {
    let known = [entry(1, days: 1), entry(2, days: 2)]
    let changed = [entry(2, days: 9, url: "https://elsewhere.example/x.mp3"), entry(3, days: 3), entry(1)]
    let found = new(changed, known: known)
    #expect(found.files.map(\.name) == ["3.mp3"] && keys(found) == changed.map(\.key))
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
    let all = (0..<101_500).map { entry($0) }
    let found = new([all[0]], known: Array(all[1...]))
    #expect(found.seen.count == 1 + ReadList.mostEntries && found.seen[1] == all[1].key)
    // A list that is empty for once, and again.
    let known = Array(all[..<12_000])
    let emptied = NewEntries([], from: [list], order: order().standing, known: new([], known: known).seen)
    #expect(NewEntries(known, from: [list], order: order().standing, known: emptied.seen).files.isEmpty)
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
      let found = NewEntries(feed, from: [list], order: order("first: all\n").standing, known: seen) { _, _ in
        [.done, .underway, .gone].randomElement(using: &random)!
      }
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
    let file = try OfferedFile(entry, from: [list])
    let order = try #require(JobName(FileName("pod")))
    let new = NewEntries([entry] + more, from: [list], order: StandingOrder(), known: nil)
    let jobs = OrderJobs(self.order(lines), as: order, new.sharedNames, hosts: ["feeds.example", "feeds.example"])
    let (text, name) = jobs.job(for: file) { existing.contains($0) }
    let read = parsed(text)
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
    ("https://h/..%2F..%2Fetc%2Fpasswd", "passwd"), ("https://h/x%2F..", nil),
    ("https://h/play/https%3A%2F%2Fcdn.example%2Fx.mp3", "x.mp3"), ("https://h/.hidden", "hidden"), ("https://h/", nil),
    ("https://h/%1B%5Bm", nil), ("https://h/-rf", "rf"),
  ])
  func `a URL names nothing but a file in the order's directory`(url: String, name: String?) throws {
    let output = try job(entry(1, url: url), "output: d/\n").request.output?.text
    #expect(output == "d/\(name ?? "entry-\(entry(1).key)")")
  }

  @Test func `a path of the list that leads elsewhere is no entry`() {
    for name in ["../a", "/etc/passwd", "a//b", ""] {
      #expect(throws: Defect.self) { try OfferedFile(FeedEntry(identity: "1", name: name, urls: ["a"]), from: [list]) }
    }
    for url in ["magnet:?xt=1", "file:///etc/passwd", "javascript:x", "http://"] {
      #expect(throws: Defect.self) { try OfferedFile(FeedEntry(identity: "1", urls: [url]), from: [list]) }
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

  @Test func `entries with digests whose URLs differ in the query alone get names of their own`() throws {
    func output(_ name: String?) throws -> String? {
      let digest = try #require(Digest(.sha256, String(repeating: "0", count: 64)))
      let entries = ["1", "2"].map { id in
        var entry = FeedEntry(identity: id, name: name, urls: ["https://h/get?file=\(id)"])
        entry.expected.digests[.sha256] = digest
        return entry
      }
      return try job(entries[0], among: [entries[1]], existing: ["get", "d/x"]).request.output?.text
    }
    #expect(try output(nil) == "get~\(FeedEntry.key(of: "1"))")
    #expect(try output("d/x") == "d/x", "a path that the list states")
  }

  @Test func `a new version of a docset replaces the old one`() throws {
    var docset = FeedEntry(identity: "Lua.tgz 2", urls: ["http://a/Lua.tgz", "http://b/Lua.tgz"])
    docset.replaces = true
    let found = try job(docset, existing: ["Lua.tgz"]).request
    #expect(found.output?.text == "Lua.tgz" && found.overwrite == true && found.urls.count == 2)
    #expect(try job(docset, "overwrite: no\n").request.overwrite == false)
  }

  @Test func `versions of a file whose URL has no name have one`() throws {
    let names = try ["1", "2"].map { version in
      var entry = FeedEntry(identity: version, urls: ["https://a/latest/"])
      entry.replaces = true
      return try OfferedFile(entry, from: [list]).name
    }
    #expect(names[0] == names[1] && names[0].hasPrefix("entry-"))
  }

  // MARK: times

  private let now = Timestamp(seconds: 1_000_000)

  @Test func `the next check`() {
    #expect(OrderCheck.next(after: now, every: 60, now: now + 5) == now + 60)
    // A check that took longer than the interval.
    #expect(OrderCheck.next(after: now, every: 1, now: now + 5) == now + 6)
  }

  @Test(arguments: [
    (Failure(.connect, ""), 1, 60, 60), (Failure(.connect, ""), 3, 60, 240), (Failure(.connect, ""), 99, 60, 4000),
    (Failure(.noNetwork, ""), 99, 60, 60), (Failure(.http, "", status: 404), 1, 21_600, 21_600),
    (Failure(.http, "", status: 404), 20, 60, 4000), (Failure(.http, "", status: 503, retryAfter: 9000), 1, 60, 9000),
    (Failure(.badEntries, ""), 2, 86_400, 120),
  ])
  func `a failed check is tried again, more and more rarely`(failure: Failure, failures: Int, every: Int, wait: Int) {
    #expect(
      RetryDecision.ofOrder(failure, failures: failures, every: every, now: now, jitter: 0.5)
        == now + Int64(wait))
  }

  @Test(arguments: [FailureCode.malformed, .protocol, .expired, .killsWorker])
  func `an order that cannot go on is given up`(code: FailureCode) {
    #expect(RetryDecision.ofOrder(Failure(code, ""), failures: 1, every: 1, now: now, jitter: 0) == nil)
  }
}
