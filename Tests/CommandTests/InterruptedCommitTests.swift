import Glibc
import TestSupport
import Testing

/// A worker that died between `verified:` and the payload's name.
@Suite struct InterruptedCommitTests {
  private func leave(_ data: [UInt8], in scene: Scene) throws {
    try writeFile(scene.spool.path("partial/x.part"), data)
    let inode = try #require(fileStatus(scene.spool.path("partial/x.part"))).st_ino
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
}
