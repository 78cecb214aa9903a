import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// Payloads get their names below the root and nowhere else.
@Suite struct OutputRootTests {
  private func output(_ text: String) throws -> OutputPath { try #require(OutputPath(text)) }
  private func part(_ fixture: Fixture, _ bytes: [UInt8] = [1, 2, 3]) throws -> PartFile {
    let part = try #require(try PartFile.open(jobName("a"), in: fixture.spool))
    try part.append(bytes)
    return part
  }

  @Test func publishingIsALink() throws {
    let fixture = try Fixture()
    let root = try OutputRoot(nil, spool: fixture.spool)
    let part = try part(fixture)
    let place = try root.place(try output("sets/2026/x"))
    #expect(try place.status() == nil)
    #expect(try place.publish(part, overwrite: false) == .published)
    #expect(try place.status()?.inode == part.inode)
    #expect(try fixture.files.payload("sets/2026/x") == [1, 2, 3])
    for directory in ["files/sets", "files/sets/2026"] {
      #expect((fixture.status(directory)?.st_mode ?? 0) & 0o777 == 0o700)
    }
    #expect((fixture.status("files/sets/2026/x")?.st_mode ?? 0) & 0o777 == 0o600)
  }

  /// As FAT, which has no links, refuses a colon.
  @Test func `a name that the file system does not take`() throws {
    let probe = Probe { call in
      guard call.path.contains("a:b") else { return nil }
      return call.kind == .rename ? .fail(.invalidArgument) : call.kind == .link ? .fail(.notPermitted) : nil
    }
    let fixture = try Fixture(hook: probe)
    let place = try OutputRoot(nil, spool: fixture.spool).place(try output("a:b"))
    let copy = try place.beginCopy(of: try part(fixture))
    _ = try copy.run([])
    let error = #expect(throws: SpoolError.self) { _ = try place.publish(copy, overwrite: false) }
    #expect(error?.errno == .invalidArgument)
  }

  /// The directory goes elsewhere when the payload has its name there: a receipt would not be true, and the data has
  /// one name again.
  @Test(arguments: ["files", "files/sub"], [true, false])
  func theWayIsLookedAtOnceMore(moved: String, isMadeAnew: Bool) throws {
    let fixture = try Fixture()
    let outputs = try CurrentOutputRoot(nil, spool: fixture.spool)
    let part = try part(fixture)
    let output = try output("sub/x")
    let place = try outputs.place(output)
    _ = try place.publish(part, overwrite: false)
    try outputs.check(place, output)
    let path = fixture.files.path(moved)
    try #require(rename(path, fixture.files.path("hold/.old")) == 0)
    if isMadeAnew { try #require(mkdir(path, 0o700) == 0) }
    #expect(throws: OutputRootProblem.self) { try outputs.check(place, output) }
    try place.withdraw(part.inode)
    #expect(filesBelow(fixture.files.path("hold")) == [])
    if !isMadeAnew, moved == "files" { try #require(mkdir(path, 0o700) == 0) }
    let again = try outputs.place(output)
    _ = try again.publish(part, overwrite: false)
    try outputs.check(again, output)
    #expect(try fixture.files.payload("sub/x") == [1, 2, 3])
  }

  /// A path that leads to no directory any more has moved; it is no error of the job.
  @Test(arguments: [true, false]) func theWayIsALinkOrAFile(isLink: Bool) throws {
    let fixture = try Fixture()
    let outputs = try CurrentOutputRoot(nil, spool: fixture.spool)
    let output = try output("sub/x")
    let place = try outputs.place(output)
    _ = try place.publish(try part(fixture), overwrite: false)
    let path = fixture.files.path("files/sub")
    try #require(rename(path, fixture.files.path("files/other")) == 0)
    if isLink { try #require(symlink("other", path) == 0) } else { try writeFile(path, []) }
    #expect(throws: OutputRootProblem.self) { try outputs.check(place, output) }
    try outputs.root.removeTemporaries(beside: output, of: [1])
    try outputs.root.setModified(output, to: 0)
  }

  /// No bytes of a server may become a key, or what workers say of servers, by way of a mount.
  @Test func theSpoolsOwnDirectories() throws {
    let fixture = try Fixture()
    let names = ["hooks", "keys", "pieces", "roots", "servers"]
    for name in names { try fixture.makeDirectory(name) }
    let own = try NamedRoots(fixture.spool).ownDirectories()
    for name in names {
      let status = try fixture.spool.system.status(fixture.spool.root, Path(name))
      #expect(own.contains { $0.isSameFile(as: status) }, "\(name)")
    }
  }

  /// As on SSHFS, which may refuse to read absolute links. A job that names one would wait for it for ever.
  @Test func aLinkThatCannotBeReadIsNotOffered() throws {
    let fixture = try Fixture(hook: Probe { $0.kind == .read && $0.path == "roots/x" ? .fail(.notPermitted) : nil })
    #expect(throws: SpoolError.self) { try NamedRoots(fixture.spool).offer("/srv", as: "x") }
  }

  /// What was published under that name by somebody else since stays.
  @Test func onlyTheOwnNameIsTakenBack() throws {
    let fixture = try Fixture()
    let part = try part(fixture)
    let place = try CurrentOutputRoot(nil, spool: fixture.spool).place(try output("x"))
    try writeFile(fixture.files.path("files/x"), [9])
    try place.withdraw(part.inode)
    #expect(try fixture.files.payload("x") == [9])
  }

  /// What a worker verified is published, whatever stands under the data's name by now.
  @Test func theVerifiedInodeIsPublished() throws {
    let fixture = try Fixture()
    let part = try part(fixture)
    try writeFile(fixture.files.path("tmp/successor"), [9, 9])
    try fixture.move("tmp/successor", "partial/a.part")
    let place = try OutputRoot(nil, spool: fixture.spool).place(try output("x"))
    // The inode has no name left; whether the kernel lets it be linked or not, nothing else gets the name.
    let published = Result { try place.publish(part, overwrite: false) }
    let payload = try fixture.files.payload("x")
    #expect(payload != [9, 9], "\(published)")
  }

  @Test func anExistingFileStays() throws {
    let fixture = try Fixture()
    let root = try OutputRoot(nil, spool: fixture.spool)
    let part = try part(fixture)
    let place = try root.place(try output("x"))
    try writeFile(fixture.files.path("files/x"), [9])
    #expect(try place.publish(part, overwrite: false) == .exists)
    #expect(try fixture.files.payload("x") == [9])
    #expect(try place.publish(part, overwrite: true) == .published)
    #expect(try fixture.files.payload("x") == [1, 2, 3])
    #expect(names(in: fixture.files.path("files")) == ["x"])
    #expect(hidden(fixture.files.path("files")) == [])
  }

  private static let outside = ["escape/x", "link/x", "sub/link/x", "loop/x", "file/x"]

  /// Symbolic links on the way, to directories in or out of the root, and files where directories should be.
  @Test(arguments: outside)
  func theWayIsBarred(_ text: String) throws {
    let fixture = try Fixture()
    let files = fixture.files.path("files")
    let elsewhere = fixture.files.path("tmp/elsewhere")
    try #require(
      mkdir(elsewhere, 0o700) == 0 && mkdir("\(files)/sub", 0o700) == 0 && mkdir("\(files)/real", 0o700) == 0)
    try #require(symlink(elsewhere, "\(files)/escape") == 0 && symlink("real", "\(files)/link") == 0)
    try #require(symlink("../real", "\(files)/sub/link") == 0 && symlink("loop", "\(files)/loop") == 0)
    try writeFile("\(files)/file", [])
    let root = try OutputRoot(nil, spool: fixture.spool)
    let error = #expect(throws: SpoolError.self) { try root.place(try output(text)) }
    #expect(error?.errno == .tooManySymbolicLinkLevels || error?.errno == .notDirectory, "\(error as Any)")
    #expect(names(in: elsewhere) == [] && names(in: "\(files)/real") == [])
  }

  /// Linux before 5.6 has no openat2(2): O_NOFOLLOW on each name does.
  @Test func withoutOpenat2() throws {
    let seen = Counter()
    let hook = Probe { call in
      guard call.kind == .open, ["link", "real", "new", "deep"].contains(call.path) else { return nil }
      return seen.next() % 2 == 1 ? .fail(.noFunction) : nil
    }
    let fixture = try Fixture(hook: hook)
    let files = fixture.files.path("files")
    try #require(mkdir("\(files)/real", 0o700) == 0 && symlink("real", "\(files)/link") == 0)
    let root = try OutputRoot(nil, spool: fixture.spool)
    let error = #expect(throws: SpoolError.self) { try root.place(try output("link/x")) }
    #expect(error?.errno == .tooManySymbolicLinkLevels || error?.errno == .notDirectory)
    _ = try root.place(try output("real/x"))
    #expect(try root.status(try output("new/deep/x")) == nil)
    let place = try root.place(try output("new/deep/x"))
    #expect(try place.publish(try part(fixture), overwrite: false) == .published)
    #expect(try fixture.files.payload("new/deep/x") == [1, 2, 3])
  }

  /// FAT and exFAT have no link(2); some network file systems have no RENAME_NOREPLACE. Neither keeps a copy from its
  /// name.
  @Test(
    arguments: [
      (Call.Kind.link, [Errno.notPermitted]), (.rename, [.invalidArgument, .noFunction]),
    ])
  func copiesWithoutLinksOrNoReplace(kind: Call.Kind, errors: [Errno]) throws {
    for errno in errors {
      let fixture = try Fixture(hook: Probe { $0.kind == kind ? .fail(errno) : nil })
      let part = try part(fixture)
      let place = try OutputRoot(nil, spool: fixture.spool).place(try output("x"))
      let copy = try place.beginCopy(of: part)
      _ = try copy.run([])
      try writeFile(fixture.files.path("files/x"), [9])
      #expect(try !place.publish(copy, overwrite: false))
      #expect(try fixture.files.payload("x") == [9])
      try fixture.remove("files/x")
      #expect(try place.publish(copy, overwrite: false))
      #expect(try fixture.files.payload("x") == [1, 2, 3])
      #expect(hidden(fixture.files.path("files")) == [])
    }
  }

  /// Each directory of the way is swapped for a link that leads out, before each call that a commit makes there. The
  /// payload ends where it was to go, or in the directory that stood there, or nowhere; never where the link leads.
  @Test(arguments: ["a", "a/b", "a/b/c"], [false, true])
  func swappedForALinkMidway(component: String, overwrite: Bool) throws {
    var swaps = 0
    for number in 1... {
      let files = try TemporarySpool()
      let (outside, way) = (files.path("tmp/outside"), files.path("files/\(component)"))
      try #require(mkdir(outside, 0o700) == 0)
      for sub in ["b", "b/c", "c"] { try #require(mkdir("\(outside)/\(sub)", 0o700) == 0) }
      for directory in ["a", "a/b", "a/b/c"] { try #require(mkdir(files.path("files/\(directory)"), 0o700) == 0) }
      let (calls, armed) = (Counter(), Switch())
      let hook = Probe { call in
        guard armed.isOn, calls.next() == number else { return nil }
        if rename(way, files.path("tmp/moved")) != 0 || symlink(outside, way) != 0 { Issue.record("not swapped") }
        return nil
      }
      let spool = try Fixture.open(files, hook: hook)
      let part = try #require(try PartFile.open(jobName("a"), in: spool))
      try part.append([1, 2, 3])
      let root = try OutputRoot(nil, spool: spool)
      armed.turnOn()
      do {
        _ = try root.status(try output("a/b/c/x"))
        let place = try root.place(try output("a/b/c/x"))
        _ = try place.publish(part, overwrite: overwrite)
      } catch let error as SpoolError {
        #expect(error.errno == .tooManySymbolicLinkLevels || error.errno == .notDirectory, "\(error)")
      }
      #expect(filesBelow(outside) == [], "at call \(number)")
      if calls.current < number { break }
      swaps = number
    }
    #expect(swaps >= 8)
  }

  @Test func aLinkAtTheFinalName() throws {
    let fixture = try Fixture()
    let victim = fixture.files.path("tmp/victim")
    try writeFile(victim, [7])
    try #require(symlink(victim, fixture.files.path("files/x")) == 0)
    let root = try OutputRoot(nil, spool: fixture.spool)
    #expect(try root.status(try output("x"))?.isRegular == false, "the link itself is looked at")
    let part = try part(fixture)
    let place = try root.place(try output("x"))
    #expect(try place.publish(part, overwrite: false) == .exists)
    #expect(throws: SpoolError.self) { try place.openExisting() }
    #expect(try place.publish(part, overwrite: true) == .published)
    #expect(try readFile(victim) == [7])
    #expect(fixture.status("files/x").map { $0.st_mode & S_IFMT } == S_IFREG)
  }

  @Test func aDirectoryAtTheFinalName() throws {
    let fixture = try Fixture()
    try fixture.makeDirectory("files/x")
    let place = try OutputRoot(nil, spool: fixture.spool).place(try output("x"))
    let part = try part(fixture)
    #expect(try place.publish(part, overwrite: false) == .exists)
    let error = #expect(throws: SpoolError.self) { _ = try place.publish(part, overwrite: true) }
    #expect(error?.errno == .isDirectory)
  }

  @Test func theRootMayBeALink() throws {
    let fixture = try Fixture()
    let elsewhere = fixture.files.path("tmp/elsewhere")
    try #require(mkdir(elsewhere, 0o700) == 0 && rmdir(fixture.files.path("files")) == 0)
    try #require(symlink(elsewhere, fixture.files.path("files")) == 0)
    let place = try OutputRoot(nil, spool: fixture.spool).place(try output("x"))
    _ = try place.publish(try part(fixture), overwrite: false)
    #expect(try readFile("\(elsewhere)/x") == [1, 2, 3])
  }

  /// Each directory's entry is made durable once a process, the payload's own each time.
  @Test func whatHasToBeSynced() throws {
    let fixture = try Fixture()
    let root = try OutputRoot(nil, spool: fixture.spool)
    let place = try root.place(try output("a/b/x"))
    func unsynced(_ place: OutputPlace) -> [Flush.Target] { place.unsynced.map(\.target) }
    func targets(_ names: String...) throws -> [Flush.Target] {
      try names.map {
        let status = try #require(fixture.status($0))
        return .file(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
      }
    }
    #expect(try unsynced(place) == targets("files/a/b", "files/a", "files"))
    place.noteSynced()
    #expect(try unsynced(place) == targets("files/a/b"))
    let other = try root.place(try output("a/c/x"))
    #expect(try unsynced(other) == targets("files/a/c", "files/a"))
    #expect(try unsynced(try root.place(try output("x"))) == targets("files"))
  }

  @Test(
    .enabled("needs /dev/shm to be a file system of its own") { try await Need.otherFileSystem.isMet() },
    arguments: [false, true])
  func anotherFileSystem(overwrite: Bool) throws {
    let fixture = try Fixture()
    let directory = try TemporaryDirectory(in: TemporaryDirectory.otherFileSystem)
    defer { withExtendedLifetime(directory) {} }
    let shared = directory.path
    let bytes = (0..<700_000).map { UInt8(truncatingIfNeeded: $0 / 3) }
    let part = try part(fixture, bytes)
    let place = try OutputRoot(shared, spool: fixture.spool).place(try output("x"))
    #expect(try place.publish(part, overwrite: overwrite) == .otherFileSystem)
    // One that a crash left is found again and replaced. Another process, which is alive, must not publish that one.
    let former = try place.beginCopy(of: part)
    let copy = try place.beginCopy(of: part)
    #expect(throws: SpoolError.self) { try place.publish(former, overwrite: overwrite) }
    try place.discard(former)
    #expect(try copy.run([]).digests[.crc32] == Digest(Checksum(value: independentCRC32(bytes))))
    #expect(names(in: shared) == [], "nothing under the final name yet")
    try writeFile("\(shared)/x", [9])
    #expect(try place.publish(copy, overwrite: overwrite) == overwrite)
    if !overwrite {
      #expect(try readFile("\(shared)/x") == [9])
      try #require(unlink("\(shared)/x") == 0)
      #expect(try place.publish(copy, overwrite: false))
    }
    #expect(try readFile("\(shared)/x") == bytes)
    #expect(UInt64(fileStatus("\(shared)/x")?.st_ino ?? 0) == (try copy.inode()))
    try place.discard(copy)
    #expect(hidden(shared) == [])
  }

  @Test func aMissingRoot() throws {
    let fixture = try Fixture()
    let error = #expect(throws: SpoolError.self) { try OutputRoot(nowhere, spool: fixture.spool) }
    #expect(error?.errno == .noSuchFileOrDirectory)
    #expect(try OutputRoot(nil, spool: fixture.spool).status(try output("no/such/x")) == nil)
    #expect(filesBelow(fixture.files.path("files")) == [], "asking makes no directories")
  }

  private func hidden(_ directory: String) -> [String] {
    names(in: directory, isHiddenToo: true).filter { $0.hasPrefix(".") }
  }

  /// A disk that cannot read a payload has damaged it; other errors say nothing of the payload.
  @Test(arguments: [Errno.ioError, .permissionDenied])
  func aPayloadThatCannotBeRead(errno: Errno) throws {
    let fixture = try Fixture(hook: Probe { $0.kind == .read && $0.path == "x" ? .fail(errno) : nil })
    try writeFile(fixture.files.path("files/x"), [1, 2, 3])
    let job =
      Array("http://h/x\nverified: 2026-11-21T12:00:00Z part=7 size=3 crc32=55BC801D\n".utf8)
      + Array("done: 2026-11-21T12:00:00Z attempts=1 output=x\n".utf8)
    let publication = job.withUnsafeBytes { JobText($0) }.journal.publication
    let receipt = try #require(publication.receipt)
    let root = try OutputRoot(nil, spool: fixture.spool)
    let check = Result { try root.check(receipt, publication.verified) }
    guard errno == .ioError else {
      #expect(throws: SpoolError.self) { try check.get() }
      return
    }
    guard case .unreadable(let error) = try check.get() else { throw Unexpected("\(check)") }
    #expect(error.errno == .ioError)
  }
}
