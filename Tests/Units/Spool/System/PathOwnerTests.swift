import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// Which paths to directories are followed, and which lead elsewhere when another user wants.
@Suite struct PathOwnerTests {
  private let directory: TemporaryDirectory

  /// `open` is a directory where everybody can replace what is in it, `sticky` one like /tmp.
  init() throws {
    directory = try TemporaryDirectory()
    for (name, mode) in [("own", mode_t(0o755)), ("open", 0o777), ("sticky", 0o1777), ("target", 0o700)] {
      try #require(mkdir(path(name), 0o700) == 0 && chmod(path(name), mode) == 0)
      try #require(mkdir(path("\(name)/sub"), 0o700) == 0 && symlink("../target", path("\(name)/link")) == 0)
      try #require(symlink(path("\(name)/link/"), path("\(name)/far")) == 0)
    }
    try #require(symlink("loop", path("own/loop")) == 0)
  }

  private func path(_ name: String) -> String { "\(directory.path)/\(name)" }

  private func reach(_ name: String) throws(SpoolError) -> (isOwn: Bool, inode: UInt64) {
    let reached = try System().reach(Path(path(name)))
    return (reached.isOwn, try reached.file.status().inode)
  }

  private func inode(_ name: String) -> UInt64? { fileStatus(path(name)).map { UInt64($0.st_ino) } }

  @Test(arguments: [
    ("own/sub", "own/sub", true), ("own/link", "target", true), ("own/far", "target", true),
    ("own/../own/./sub//", "own/sub", true), ("sticky/link/sub", "target/sub", true), ("open/sub", "open/sub", false),
    ("open/sub/../sub", "open/sub", false),
  ])
  func `directories are followed, and own links`(name: String, leadsTo: String, isOwn: Bool) throws {
    let reached = try reach(name)
    #expect(reached.inode == inode(leadsTo) && reached.isOwn == isOwn)
  }

  @Test(arguments: [
    ("open/link", Errno.tooManySymbolicLinkLevels), ("open/far", .tooManySymbolicLinkLevels),
    ("own/loop", .tooManySymbolicLinkLevels), ("own/none", .noSuchFileOrDirectory),
  ])
  func `a link that another user can replace is not followed`(name: String, errno: Errno) {
    let error = #expect(throws: SpoolError.self) { _ = try reach(name) }
    #expect(error?.errno == errno && error?.call == .open)
  }

  @Test func `a relative path begins at an open directory`() throws {
    let start = try System().open(AT_FDCWD, Path(path("own")), O_RDONLY | O_DIRECTORY)
    let reached = try System().reach(Path("link"), from: start.number)
    #expect(try reached.file.status().inode == inode("target"))
  }
}
