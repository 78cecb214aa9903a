import Glibc
import TestSupport
import Testing

/// A worker that died between `verified:` and the payload's name.
@Suite struct InterruptedCommitTests {
  /// - Parameter place: what bears the verified inode's number.
  private func leave(_ data: [UInt8], as place: String = "partial/x.part", in scene: Scene) throws {
    try writeFile(scene.spool.path(place), data)
    let inode = try #require(fileStatus(scene.spool.path(place))).st_ino
    let text = """
      url: \(scene.server.url("/fast"))
      output: o
      verified: 2026-01-02T03:04:05Z size=\(payload.count) crc32=\(hex8(independentCRC32(payload))) part=\(inode)

      """
    try writeFile(scene.spool.path("partial/x"), Array(text.utf8))
  }

  @Test func `verified data gets its name without another request`() async throws {
    let scene = try Scene()
    try leave(payload, in: scene)
    let result = try await scene.spoolrun("--once")
    #expect(result.status == .exited(0), "\(result)")
    #expect(try scene.spool.payload("o") == payload && scene.server.requests.isEmpty)
  }

  /// Its number may have been given out again.
  @Test func `another file under the verified inode's number is never published, nor resumed`() async throws {
    let scene = try Scene()
    try leave(payload.reversed(), in: scene)
    let first = try await scene.spoolrun("--once")
    #expect(first.status == .exited(75), "\(first)")
    #expect(scene.spool.places(of: "x") == ["partial/x"] && scene.spool.names("files") == [])
    #expect(
      try String(decoding: readFile(scene.spool.path("partial/x")), as: UTF8.self).contains("code=mismatch-crc32"))
    try await scene.spoolrun("retry", "x")
    let second = try await scene.spoolrun("--once")
    #expect(second.status == .exited(0), "\(second)")
    #expect(try scene.spool.payload("o") == payload)
    #expect(scene.server.requests.map(\.rangeStart) == [nil])
  }

  /// It has its final name already, by which anybody may have changed it: no receipt may say that this is what was
  /// received.
  @Test func `a payload that was changed before its receipt gets none`() async throws {
    let scene = try Scene()
    try leave(payload, in: scene)
    #expect(link(scene.spool.path("partial/x.part"), scene.spool.path("files/o")) == 0)
    try writeFile(scene.spool.path("files/o"), payload.reversed())
    let result = try await scene.spoolrun("--once")
    #expect(result.status == .exited(1), "\(result)")
    #expect(scene.spool.places(of: "x") == ["failed/x"])
    let text = try String(decoding: readFile(scene.spool.path("failed/x")), as: UTF8.self)
    #expect(text.contains("code=output-exists") && !text.contains("done:"))
  }

  /// On another file system than the spool it may be anybody's, and here as well once the data is gone.
  @Test func `a stranger's output under the verified inode's number is not taken for the payload`() async throws {
    let scene = try Scene()
    let stranger = [UInt8](payload.reversed())
    try leave(stranger, as: "files/o", in: scene)
    let result = try await scene.spoolrun("--once")
    #expect(result.status == .exited(1), "\(result)")
    #expect(scene.spool.places(of: "x") == ["failed/x"] && scene.server.requests.isEmpty)
    #expect(try String(decoding: readFile(scene.spool.path("failed/x")), as: UTF8.self).contains("code=output-exists"))
    #expect(try scene.spool.payload("o") == stranger)
  }

  /// SSHFS numbers inodes for each mount, so the worker of another host sees another number.
  @Test(arguments: [false, true]) func `a published payload is known by its content`(hasReceipt: Bool) async throws {
    let scene = try Scene()
    try leave(payload, in: scene)
    try writeFile(scene.spool.path("files/o"), payload)
    if hasReceipt {
      let receipt = "done: 2026-01-02T03:04:05Z attempts=1 output=o bytes-fetched=\(payload.count) seconds=1\n"
      try writeFile(
        scene.spool.path("partial/x"), try readFile(scene.spool.path("partial/x")) + Array(receipt.utf8))
      // As another worker made it anew.
      try writeFile(scene.spool.path("partial/x.part"), [])
    } else {
      try #require(unlink(scene.spool.path("partial/x.part")) == 0)
    }
    let result = try await scene.spoolrun("--once")
    #expect(result.status == .exited(0) && scene.server.requests.isEmpty, "\(result)")
    #expect(scene.spool.places(of: "x") == ["done/x"] && scene.spool.names("partial") == [])
    #expect(try scene.spool.payload("o") == payload)
  }
}
