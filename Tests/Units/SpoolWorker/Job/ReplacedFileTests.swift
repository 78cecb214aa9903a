import Synchronization
import SystemPackage
import TestSupport
import Testing
import Transfer

@testable import Spool
@testable import SpoolWorker

/// A job with pieces that is to replace a file begins with a copy of it.
@Suite struct ReplacedFileTests {
  private struct Found: Sendable {
    var length: UInt64
    var file: [UInt8]
    var hasVersion: Bool
    /// Before the copy was asked for.
    var writesOfRecovery: [String]
    var writes: [String]
    var error: SpoolError?
  }

  /// 256 pieces, and several blocks to copy.
  private static let bytes = (0..<1 << 20).map { UInt8(truncatingIfNeeded: $0 / 4096 &+ $0) }

  /// What is left after the copy of `old`.
  /// - Parameter cut: where a crash cuts the copy off, before another one.
  private func take(
    _ old: [UInt8] = bytes, cut: UInt64? = nil, _ fault: @escaping @Sendable (Call) -> Fault? = { _ in nil }
  ) throws -> Found {
    try WorkerLoop.alone { try await Self.take(old, cut, Probe(fault)) }
  }

  @WorkerLoop private static func take(_ old: [UInt8], _ cut: UInt64?, _ probe: Probe) async throws -> Found {
    let fixture = try Fixture(hook: probe)
    var maker = PieceList.Maker(length: 4096)
    bytes.withUnsafeBytes { maker.take($0) }
    let list = try #require(maker.list())
    try writeFile(fixture.files.path("files/a"), old)
    let text = "http://127.0.0.1:9/a\noverwrite: yes\nsize: \(bytes.count)\npieces: \(list.key.text)\n"
    try fixture.drop(text, as: "a")
    let claim = try fixture.claim("a")
    let plan = try JobPlan(claim.text.request, protocols: [.http], pieces: list)
    let environment = try JobEnvironment(fixture.spool, WorkerOptions()) { _ in }
    let recovery = DataRecovery(claim: claim, plan: plan, environment: environment)
    func writes(after count: Int) -> [String] {
      probe.calls[count...].filter { $0.kind == .write }.map { String($0.path.prefix { $0 != "/" }) }
    }
    let before = probe.calls.count
    let data = try await recovery.run().data
    let (ofRecovery, recovered) = (writes(after: before), probe.calls.count)
    var error: SpoolError?
    do { try await recovery.takeReplaced(into: data) } catch let found as SpoolError { error = found }
    if let cut {
      try data.part.truncate(to: cut)
      try await recovery.takeReplaced(into: data)
    }
    // Another transfer asks what this one still needs.
    _ = environment.space.shortage(of: 1 << 21)
    data.leaveSpace()
    let file = try fixture.bytes("partial/a.part")
    try data.part.close()
    return Found(
      length: data.part.length, file: file, hasVersion: data.version != nil, writesOfRecovery: ofRecovery,
      writes: writes(after: recovered), error: error)
  }

  @Test func `the answer is in the journal before the first byte`() throws {
    let found = try take()
    #expect(found.length == Self.bytes.count && found.file == Self.bytes && found.hasVersion)
    #expect(found.writesOfRecovery == [], "what can fail comes when the attempt has the data")
    #expect(found.writes.first == "cur" && found.writes.contains("partial"), "\(found.writes)")
  }

  @Test func `without its line nothing is copied`() throws {
    let isReady = Atomic(false)
    let found = try take { call in
      if call.path.hasSuffix("a.part") { isReady.store(true, ordering: .relaxed) }
      let isLine = call.kind == .write && call.path.hasPrefix("cur/") && isReady.load(ordering: .relaxed)
      return isLine ? .fail(.noSpace) : nil
    }
    #expect(found.error?.errno == .noSpace && found.file == [])
  }

  /// It only saves traffic, so it stops no job that is to replace it.
  @Test(arguments: [(Call.Kind.open, Errno.permissionDenied), (.open, .noSuchFileOrDirectory), (.read, .ioError)])
  func `an old file that cannot be read is no obstacle`(kind: Call.Kind, errno: Errno) throws {
    let count = Counter()
    let found = try take { call in
      guard call.kind == kind, call.path == "a" else { return nil }
      // The second block, when the first one is copied.
      return kind == .read && count.next() == 1 ? nil : .fail(errno)
    }
    #expect(found.error == nil && found.length == 0 && found.file == [] && !found.hasVersion, "\(found.writes)")
  }

  @Test func `a copy that was cut off begins anew`() throws {
    let found = try take(cut: 300_000)
    #expect(found.length == Self.bytes.count && found.file == Self.bytes && found.hasVersion)
  }

  @Test func `of another file nothing stays`() throws {
    let found = try take(Self.bytes.map { ~$0 })
    #expect(found.error == nil && found.length == 0 && found.file == [] && !found.hasVersion)
  }
}
