import Testing

@testable import Spool

/// syncfs(2) makes everything durable only where the kernel itself has everything. Seen on MooseFS: a host was cut off,
/// and what its client had in memory, receipts among it, was gone although syncfs(2) had succeeded.
@Suite struct FileSystemFlushTests {
  @Test(
    .enabled("syncfs(2) that reports errors") { FileSystem.isReliable },
    arguments: [
      (FileSystemKind(type: 0xEF53), true), (FileSystemKind(type: 0x9123_683E), true), (.fuse, false),
      (FileSystemKind(type: 0x6969), false), (FileSystemKind(type: 0x1234), false),
      (FileSystemKind(type: 0x794C_7630), false), (FileSystemKind(type: 0xF15F), false),
    ])
  func isOnlyForLocalFileSystems(kind: FileSystemKind, isWhole: Bool) throws {
    let fixture = try Fixture(kind: kind)
    #expect((try fixture.spool.fileSystem() != nil) == isWhole)
  }
}
