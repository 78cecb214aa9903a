import Glibc
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// The seam: what is repeated, what is not, and what an error says.
@Suite struct SystemTests {
  @Test func interruptedCallsAreRepeated() throws {
    let directory = try TemporaryDirectory()
    let left = Atomic(3)
    let hook = Probe { call in
      call.kind == .mkdir && left.subtract(1, ordering: .relaxed).newValue >= 0 ? .fail(.interrupted) : nil
    }
    try System(hook: hook).makeDirectory(AT_FDCWD, Path("\(directory.path)/x"))
    #expect(hook.count(.mkdir) == 4)
    #expect(fileStatus("\(directory.path)/x") != nil)
  }

  /// fsync(2) after EINTR would lie as after EIO; close(2) has closed all the same.
  @Test func fsyncIsNotRepeated() throws {
    let directory = try TemporaryDirectory()
    let descriptor = open(directory.path, O_RDONLY | O_CLOEXEC)
    defer { close(descriptor) }
    let hook = Probe { [.fsync, .fdatasync].contains($0.kind) ? .fail(.interrupted) : nil }
    let system = System(hook: hook)
    #expect(throws: SpoolError.self) { try system.fsync(descriptor, Path("d")) }
    #expect(throws: SpoolError.self) { try system.fdatasync(descriptor, Path("d")) }
    #expect(hook.count(.fsync) == 1 && hook.count(.fdatasync) == 1)
    try System(hook: Probe { $0.kind == .close ? .fail(.interrupted) : nil }).close(-1, Path("d"))
  }

  @Test func shortWritesGoOn() throws {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/x"
    let hook = Probe { $0.kind == .write ? .short(3) : nil }
    let system = System(hook: hook)
    let descriptor = try system.create(AT_FDCWD, Path(path), O_RDWR)
    defer { close(descriptor) }
    try Array("0123456789".utf8).withUnsafeBytes { try system.write(descriptor, Path(path), $0, at: 2) }
    #expect(hook.count(.write) == 4)
    #expect(try readFile(path) == [0, 0] + Array("0123456789".utf8))
  }

  @Test func errorsNameTheCall() {
    let error = #expect(throws: SpoolError.self) {
      try System().makeDirectory(AT_FDCWD, Path("/proc/self/no\u{1b}such"))
    }
    #expect(error?.call == .mkdir && error?.errno == .noSuchFileOrDirectory)
    #expect(error?.description.hasPrefix("mkdir /proc/self/no\\x1bsuch: ") == true, "\(error as Any)")
    #expect(SpoolError(call: .write, path: "", errno: .noSpace).isDiskFull)
    #expect(SpoolError(call: .write, path: "", errno: .diskQuotaExceeded).isDiskFull)
    #expect(!SpoolError(call: .write, path: "", errno: .ioError).isDiskFull)
  }

  @Test func descriptorsAreNotInherited() throws {
    let directory = try TemporaryDirectory()
    let system = System()
    let opened = [
      try system.open(AT_FDCWD, Path(directory.path), O_RDONLY),
      try system.create(AT_FDCWD, Path("\(directory.path)/x"), O_RDWR),
    ]
    let beneath = try system.openBeneath(opened[0], Path("x"), O_RDONLY)
    for descriptor in opened + [beneath] {
      #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
      close(descriptor)
    }
  }

  /// Names of all lengths, many times what the kernel gives at once: each comes whole, and once.
  @Test func aLongDirectoryComesWhole() throws {
    let directory = try TemporaryDirectory()
    let names = (0..<3000).map { "\($0)-" + String(repeating: "x", count: $0 % 240) }
    for name in names { try writeFile("\(directory.path)/\(name)", []) }
    let hook = Probe { _ in nil }
    let stream = DirectoryStream(
      try System().open(AT_FDCWD, Path(directory.path), O_RDONLY), Path("d"), System(hook: hook))
    var seen: [String] = []
    while let name = try stream.next() { seen.append(name.display) }
    let isWhole = seen.sorted() == names.sorted()
    #expect(isWhole, "\(seen.count) of \(names.count)")
    #expect(hook.count(.list) > 3)
    #expect(try stream.next() == nil, "the end stays the end")
  }

  @Test func listingLeavesOutOnlyTheTwo() throws {
    let directory = try TemporaryDirectory()
    for name in [".hidden", "a"] { try writeFile("\(directory.path)/\(name)", []) }
    let system = System()
    let stream = DirectoryStream(
      try system.open(AT_FDCWD, Path(directory.path), O_RDONLY), Path("d"), system)
    var names: Set<String> = []
    while let name = try stream.next() { names.insert(name.display) }
    #expect(names == [".hidden", "a"])
  }
}
