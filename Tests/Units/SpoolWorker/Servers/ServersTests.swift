import Glibc
import TestSupport
import Testing

@testable import Spool
@testable import SpoolWorker
@testable import Transfer

/// What a worker knows of servers, and shares with others by their files.
@Suite struct ServersTests {
  private static let key = "http://b:80"

  @WorkerLoop private static func servers(_ spool: Spool) -> Servers {
    Servers(spool, perHost: 16, log: { _ in }, isForPerson: false, expectsMistakes: false, way: { [$0.server] }) { _ in
      4
    }
  }

  private static func asked(_ spool: Spool, seconds: Int64) -> ServerNote.Rest {
    let now = spool.now()
    return ServerNote.Rest(
      since: now, failed: now, until: now + seconds, cause: "asked", code: "http-429", reason: "later", failures: 1,
      host: nil)
  }

  /// Lets it look until something is so; between two looks are seconds.
  @WorkerLoop private static func look(_ servers: Servers, until isSo: () -> Bool) {
    for _ in 0..<1000 {
      servers.look()
      if isSo() { return }
      usleep(20_000)
    }
    Issue.record("it was not seen")
  }

  /// What a server said to one job alone holds for longer than its rest, and the server serves others meanwhile.
  @Test(arguments: [(nil, false), (60, false), (61, true), (200_000, true)] as [(Int?, Bool)])
  func whatAJobWaitsFor(retryAfter: Int?, isLonger: Bool) throws {
    let fixture = try Fixture()
    try fixture.drop("http://b/a\n", as: "a")
    let request = try fixture.claim("a").text.request
    var failure = Failure(.http, "later", status: 503, retryAfter: retryAfter)
    failure.rest = retryAfter == 200_000 ? 600 : 60
    let keys = try WorkerLoop.alone { [failure] in
      Self.servers(fixture.spool).awaited(after: failure, of: request)
    }
    #expect(keys == [isLonger ? ServerRests.gesture(Self.key) : Self.key])
    failure.rest = 86_400
    let longest = try WorkerLoop.alone { [failure] in Self.servers(fixture.spool).awaited(after: failure, of: request) }
    #expect(longest == [Self.key])
  }

  enum End: CaseIterable { case touch, rm, answer }

  /// A person ends all waits for a server; that it has answered another worker does not.
  @Test(arguments: End.allCases) func whatEndsAWait(end: End) throws {
    let fixture = try Fixture()
    let (spool, files) = (fixture.spool, ServerFiles(fixture.spool))
    let note = ServerNote(server: Self.key, rests: [Self.asked(spool, seconds: 3600)], bears: 2)
    try files.write(note, end: note.rests[0].until.seconds)
    let back = try WorkerLoop.alone {
      let servers = Self.servers(spool)
      var back: Set<String> = []
      servers.cameBack = { back = $0 }
      Self.look(servers) { servers.rests.rests[Self.key] != nil }
      switch end {
      case .touch: try files.write(note, end: spool.now().seconds - 1)
      case .rm: _ = try files.forget { _ in true }
      case .answer: try files.write(ServerNote(server: Self.key, bears: 2), end: spool.now().seconds)
      }
      Self.look(servers) { !back.isEmpty }
      return back
    }
    #expect(back == Set([Self.key] + (end == .answer ? [] : [ServerRests.gesture(Self.key)])))
  }

  /// One host cannot reach a server that has asked another one, on the same spool, for an hour.
  @Test func whatOneHostCannotReachHasAskedAnother() throws {
    let fixture = try Fixture()
    let (spool, files) = (try fixture.another(host: "beta"), ServerFiles(fixture.spool))
    let rest = Self.asked(spool, seconds: 3600)
    try fixture.drop("http://b/a\n", as: "a")
    let claim = try fixture.claim("a")
    let mirror = try #require(MirrorURL.all(of: claim.text.request, WorkerOptions().protocols).first)
    func rests() throws -> [String?]? { try files.read(ServerFiles.name(of: Self.key))?.note?.rests.map(\.host) }
    try WorkerLoop.alone {
      let servers = Self.servers(spool)
      try files.write(ServerNote(server: Self.key, rests: [rest]), end: rest.until.seconds)
      let failure = servers.judged(
        Failure(.connect, "no route"), isOfOther: false, of: 1, mirror, claim, .endless)
      #expect(try failure.rest != nil && rests() == ["beta", nil])
      Self.look(servers) { servers.rests.rests[Self.key]?.cause == .asked }
      // It is no part of the rest that ends here.
      let other = Self.servers(spool)
      _ = other.judged(Failure(.connect, "no route"), isOfOther: false, of: 1, mirror, claim, .endless)
      other.started(2, [Self.key])
      other.answered(2, mirror)
      #expect(try other.rests.rests.isEmpty && rests() == [nil])
      // This is.
      servers.started(3, [Self.key])
      servers.answered(3, mirror)
      #expect(try rests() == nil)
    }
  }

  /// One script serves many files by their queries.
  @Test func twoQueriesAreTwoURLs() throws {
    let fixture = try Fixture()
    try fixture.drop("url: http://b/get?id=1\nurl: http://b/get?id=1#x\nurl: http://b/get?id=2\n", as: "a")
    let claim = try fixture.claim("a")
    let mirrors = try MirrorURL.all(of: claim.text.request, WorkerOptions().protocols)
    let rests = try WorkerLoop.alone {
      let servers = Self.servers(fixture.spool)
      let failure = Failure(.http, "later", status: 429, retryAfter: 3600)
      return mirrors.map { servers.judged(failure, isOfOther: false, of: 1, $0, claim, .endless).rest }
    }
    #expect(rests == [60, 60, 3600])
  }

  /// A server that refuses no more is soon asked as often as before, also by the next run.
  /// A host wrote it whose clock was half an hour ahead; by the right one it would end in half an hour.
  @Test func aRestByAClockThatWasAheadIsAsLongAsItWas() throws {
    let fixture = try Fixture()
    let (spool, files) = (fixture.spool, ServerFiles(fixture.spool))
    let ahead = spool.now() + 1800
    let rest = ServerNote.Rest(
      since: ahead, failed: ahead, until: ahead + 3, cause: "asked", code: "http-503", reason: "later", failures: 1,
      host: nil)
    try files.write(ServerNote(server: Self.key, rests: [rest], answered: ahead), end: ahead.seconds + 3)
    try WorkerLoop.alone {
      let servers = Self.servers(spool)
      Self.look(servers) { servers.rests.rests[Self.key] != nil }
      let now = LoopExecutor.milliseconds()
      let known = try #require(servers.rests.rests[Self.key])
      #expect(known.until <= now + 3000 && known.failed <= now && known.since <= now)
      #expect(servers.rests.answered(Self.key).map { $0 <= now } == true)
    }
  }

  @Test func aPauseThatIsOverIsForgotten() throws {
    let fixture = try Fixture()
    let (spool, files) = (fixture.spool, ServerFiles(fixture.spool))
    try files.write(ServerNote(server: Self.key, bears: 4, pause: 200), end: spool.now().seconds)
    try fixture.drop("http://b/a\n", as: "a")
    let mirror = try #require(MirrorURL.all(of: fixture.claim("a").text.request, WorkerOptions().protocols).first)
    let writes = try WorkerLoop.alone {
      let servers = Self.servers(spool)
      Self.look(servers) { servers.rests.pause(of: Self.key) == 200 }
      var (writes, last): (Int, Int?) = (0, 200)
      for _ in 0..<6000 {
        servers.answered(1, mirror)
        let pause = try files.read(ServerFiles.name(of: Self.key))?.note?.pause
        if pause != last { (writes, last) = (writes + 1, pause) }
      }
      return writes
    }
    let note = try files.read(ServerFiles.name(of: Self.key))?.note
    #expect(note?.pause == nil && note?.bears == 4 && writes == 8, "\(writes)")
  }
}
