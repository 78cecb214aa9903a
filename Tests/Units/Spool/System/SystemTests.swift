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
    let hook = Probe { [.fsync, .fdatasync].contains($0.kind) ? .fail(.interrupted) : nil }
    let file = try System(hook: hook).open(AT_FDCWD, Path(directory.path), O_RDONLY).shared()
    #expect(throws: SpoolError.self) { try file.fsync() }
    #expect(throws: SpoolError.self) { try file.fdatasync() }
    #expect(hook.count(.fsync) == 1 && hook.count(.fdatasync) == 1)
    let closing = System(hook: Probe { $0.kind == .close ? .fail(.interrupted) : nil })
    try closing.open(AT_FDCWD, Path(directory.path), O_RDONLY).shared().close()
  }

  /// After its last holder, or after `close`, a descriptor's number is the next file's: nothing may go there.
  @Test func aClosedFileTakesNoCalls() throws {
    let directory = try TemporaryDirectory()
    let file = try System().create(AT_FDCWD, Path("\(directory.path)/x"), O_RDWR).shared()
    let number = file.number
    try file.close()
    try file.close()
    let other = open(directory.path, O_RDONLY | O_CLOEXEC)
    defer { close(other) }
    #expect(other == number || fcntl(number, F_GETFD) == -1)
    let error = #expect(throws: SpoolError.self) { _ = try file.status() }
    #expect(error?.errno == .badFileDescriptor && !file.isOpen)
  }

  @Test func shortWritesGoOn() throws {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/x"
    let hook = Probe { $0.kind == .write ? .short(3) : nil }
    let system = System(hook: hook)
    try system.create(AT_FDCWD, Path(path), O_RDWR).write(Array("0123456789".utf8), at: 2)
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
      try system.open(AT_FDCWD, Path(directory.path), O_RDONLY).shared(),
      try system.create(AT_FDCWD, Path("\(directory.path)/x"), O_RDWR).shared(),
    ]
    let beneath = try system.openBeneath(opened[0].number, Path("x"), O_RDONLY).shared()
    for file in opened + [beneath] { #expect(fcntl(file.number, F_GETFD) & FD_CLOEXEC != 0) }
  }

  /// Names of all lengths, many times what the kernel gives at once: each comes whole, and once.
  @Test func aLongDirectoryComesWhole() throws {
    let directory = try TemporaryDirectory()
    let names = (0..<3000).map { "\($0)-" + String(repeating: "x", count: $0 % 240) }
    for name in names { try writeFile("\(directory.path)/\(name)", []) }
    let hook = Probe { _ in nil }
    let stream = DirectoryStream(try System(hook: hook).open(AT_FDCWD, Path(directory.path), O_RDONLY))
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
    let stream = DirectoryStream(try System().open(AT_FDCWD, Path(directory.path), O_RDONLY))
    var names: Set<String> = []
    while let name = try stream.next() { names.insert(name.display) }
    #expect(names == [".hidden", "a"])
  }
}
