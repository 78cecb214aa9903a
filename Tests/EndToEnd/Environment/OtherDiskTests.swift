import Glibc
import TestSupport
import Testing

/// An output root on another file system than the spool, whose inode numbers are its own.
@Suite(.enabled("needs root and a mount namespace") { try await Need.mounts.isMet() })
struct OtherDiskTests {
  /// linkat(2) says EEXIST before it says EXDEV.
  @Test func `another disk's file under the data's inode number is a stranger's`() async throws {
    let (here, there) = (try await SmallDisk(megabytes: 16), try await SmallDisk(megabytes: 16))
    let spool = try TemporarySpool(in: here.path)
    // Not by --directory, which leads through realpath(3), and so out of the disk's mount namespace.
    let files = spool.path("files")
    try #require(rmdir(files) == 0 && symlink(there.path, files) == 0)
    let gate = try Gate()
    let server = try halfwayServer(halfwayBody, gate: gate)
    try spool.drop("a", "\(server.url("/a"))\n")
    let worker = try startSpoolrun(["--once", spool.root])
    try await waitForHalf(in: spool)
    let inode = try #require(fileStatus(spool.path("partial/a.part"))).st_ino
    // A tmpfs counts its files from 1.
    let stranger = Array("a stranger's\n".utf8)
    for number in 0..<1000 {
      let path = "\(there.path)/stranger-\(number)"
      try writeFile(path, stranger)
      guard let found = fileStatus(path)?.st_ino, found < inode else { break }
    }
    let same = names(in: there.path).first { fileStatus("\(there.path)/\($0)")?.st_ino == inode }
    try #require(rename("\(there.path)/\(try #require(same))", "\(there.path)/a") == 0)
    gate.open()
    try await worker.result().exits(1)
    #expect(spool.places(of: "a") == ["failed/a"])
    #expect(try spool.lastFailure("failed/a")["code"] == "output-exists")
    #expect(try readFile("\(there.path)/a") == stranger)
  }
}
