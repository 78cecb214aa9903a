import Glibc
import TestSupport
import Testing

@testable import Spool
@testable import SpoolWorker
@testable import Transfer

/// The jobs for a list's new entries.
@Suite struct OrderDropTests {
  /// A list may have a hundred thousand entries, and the output may be on a network file system.
  @Test(arguments: ["", "root: music\n"])
  func `the loop waits for no file while a list is looked at`(root: String) throws {
    let (calls, dropped, texts) = try WorkerLoop.alone { try await Self.drop(root) }
    #expect(calls == 0 && dropped == 2)
    #expect(texts.sorted().map { $0.split(separator: "output: ")[1].prefix(2) } == ["1~", "2\n"], "\(texts)")
  }

  /// - Returns: the calls to the kernel on the loop's thread, and what was dropped: of two entries, one has a name that
  ///   a file has.
  @WorkerLoop private static func drop(_ root: String) async throws -> (calls: Int, dropped: Int, texts: [String]) {
    let (loop, isOn, count) = (pthread_self(), Switch(), Counter())
    let fixture = try Fixture(
      hook: Probe { _ in
        if isOn.isOn, pthread_equal(pthread_self(), loop) != 0 { _ = count.next() }
        return nil
      })
    let music = try TemporaryDirectory()
    try fixture.makeDirectory("roots")
    try #require(symlink(music.path, fixture.files.path("roots/music")) == 0)
    try writeFile(root.isEmpty ? fixture.files.path("files/1") : "\(music.path)/1", [1])
    let order = "url: http://127.0.0.1:9/list\nevery: 1h\nfirst: all\n\(root)"
    _ = try Drops(fixture.spool).subscribe(order, as: jobName("pod"))
    let claim = try fixture.claim("pod", from: .standing)
    let environment = try JobEnvironment(fixture.spool, WorkerOptions()) { _ in }
    let entries = (1...2).map { FeedEntry(identity: "\($0)", urls: ["/\($0)"]) }
    let mirrors = try MirrorURL.all(of: claim.text.request, [.http])
    isOn.turnOn()
    let outcome = try await OrderDrop(claim, environment, mirrors, signedBy: nil).drop(
      entries, from: mirrors.map(\.parts))
    isOn.turnOff()
    let texts = try fixture.names("new").map { try fixture.text("new/\($0)") }
    return (count.current, outcome.dropped, texts)
  }
}
