import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// The data of a begun job: length and checksum always speak of the same bytes.
@Suite struct PartFileTests {
  private let path = "partial/a.part"

  private func opened(_ fixture: Fixture, _ name: String = "a") throws -> PartFile {
    let job = try jobName(name)
    return try #require(try PartFile.open(job, in: fixture.spool))
  }

  /// Without a period that divides the size of a block or page.
  private func bytes(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = (0..<251).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    while bytes.count < count { bytes += bytes.prefix(count - bytes.count) }
    return Array(bytes.prefix(count))
  }

  @Test func appending() throws {
    let fixture = try Fixture()
    let part = try opened(fixture)
    #expect(part.length == 0 && part.mark == Mark.zero)
    try part.append(bytes(1000))
    try part.append([])
    try part.append(bytes(5000))
    let all = bytes(1000) + bytes(5000)
    #expect(try fixture.bytes(path) == all)
    #expect(part.mark == Mark(offset: 6000, checksum: Checksum(value: independentCRC32(all))))
    #expect((fixture.status(path)?.st_mode ?? 0) & 0o777 == 0o600)
    #expect(UInt64(fixture.status(path)?.st_ino ?? 0) == part.inode)
  }

  /// A power cut on btrfs can leave new data with its name in `tmp/` as well. Left alone, it would not count as the
  /// job's, which would get another name.
  @Test func aNameInTmpThatAPowerCutLeft() throws {
    let fixture = try Fixture()
    let files = fixture.files
    try opened(fixture).append(bytes(10))
    let left = files.path("tmp/a.part:beta.1.00000001")
    try #require(link(files.path(path), left) == 0)
    try writeFile(files.path("tmp/a.part:beta.1.00000002"), [])
    try writeFile(files.path("tmp/b"), [])
    #expect(try opened(fixture).length == 10)
    #expect(files.names("tmp").sorted() == ["a.part:beta.1.00000002", "b"])
  }

  @Test(arguments: [Errno.noSpace, .ioError])
  func aFailedWriteIsTakenBack(errno: Errno) throws {
    let fixture = try Fixture(hook: Probe.failing(path, nth: 3, with: errno))
    let part = try opened(fixture)
    try part.append(bytes(10))
    // The second append writes 4 bytes, then fails.
    #expect(throws: SpoolError.self) { try part.append(bytes(20)) }
    #expect(part.mark == Mark(offset: 10, checksum: Checksum(value: independentCRC32(bytes(10)))))
    #expect(try fixture.bytes(path) == bytes(10))
    try part.append(bytes(20))
    #expect(try fixture.bytes(path) == bytes(10) + bytes(20))
  }

  @Test(.enabled("needs a disk") { try await Need.disk.isMet() })
  func whatIsInTheCache() throws {
    let fixture = try Fixture()
    let part = try opened(fixture)
    try part.append(bytes(3 << 20))
    #expect(part.cache.has(0..<3 << 20) && part.cache.has(5000..<5001))
    try part.flush.run()
    // Nothing is there.
    #expect(!part.cache.has(2 << 20..<8 << 20))
    part.cache.forget(before: 3 << 20)
    #expect(!part.cache.has(0..<3 << 20) && !part.cache.has(5000..<5001))
  }

  @Test func truncating() throws {
    let fixture = try Fixture()
    let part = try opened(fixture)
    try part.append(bytes(100))
    try part.truncate(to: 40)
    let mark = try part.reading(from: Mark.zero, to: 40).run()
    part.adopt(mark)
    #expect(part.mark.digests[.crc32] == Digest(Checksum(value: independentCRC32(bytes(40)))))
    try part.append([1])
    #expect(try fixture.bytes(path) == bytes(40) + [1])
    try part.truncate(to: 0)
    #expect(part.mark == Mark.zero)
    #expect(try fixture.bytes(path) == [])
  }

  /// The other digests are carried on wherever the CRC-32 is: appended, cut back, begun anew.
  @Test func otherDigests() throws {
    let hook = Probe()
    let fixture = try Fixture(hook: hook)
    let part = try #require(try PartFile.open(jobName("a"), in: fixture.spool, digests: [.sha256, .md5]))
    func expected(_ bytes: [UInt8]) -> Mark {
      var states = DigestStates([.sha256, .md5])
      bytes.withUnsafeBytes { states.update($0) }
      return Mark(offset: UInt64(bytes.count), states: states)
    }
    let all = bytes(3_000_000)
    #expect(part.mark == expected([]))
    try part.append(Array(all[..<1_000_000]))
    let early = part.mark
    #expect(early == expected(Array(all[..<1_000_000])))
    try part.append(Array(all[1_000_000...]))
    #expect(part.mark == expected(all))
    let before = hook.count(.read)
    #expect(try part.reading(from: early, to: 1_000_100).run() == expected(Array(all[..<1_000_100])))
    #expect(hook.count(.read) == before + 1, "nothing before the mark is read")
    try part.truncate(to: 1_000_000)
    part.adopt(early)
    try part.append([1])
    #expect(part.mark == expected(Array(all[..<1_000_000]) + [1]))
    let beside = try part.beginReplacement(owner: jobName("a"))
    try beside.append([2])
    #expect(beside.mark == expected([2]))
    try part.truncate(to: 0)
    #expect(part.mark == expected([]))
  }

  /// Only what lies beyond the mark is read.
  @Test func readingFromAMark() throws {
    let hook = Probe()
    let fixture = try Fixture(hook: hook)
    let part = try opened(fixture)
    let all = bytes(1_000_000)
    try part.append(all)
    let before = hook.count(.read)
    let start = Mark(offset: 999_000, checksum: Checksum(value: independentCRC32(all[..<999_000])))
    let mark = try part.reading(from: start, to: 1_000_000).run()
    #expect(mark == part.mark)
    #expect(hook.count(.read) == before + 1)
    #expect(try part.reading(from: mark, to: 1_000_000).run() == mark)
    #expect(throws: SpoolError.self) { try part.reading(from: start, to: 1_000_001).run() }
  }

  /// What an fsync may have lost is written once more, all of it and nothing else.
  @Test(arguments: [0, 1, 262_143, 262_144, 262_145, 700_000, 999_999, 1_000_000])
  func rewritingWhileReading(from: Int) throws {
    let hook = Probe()
    let fixture = try Fixture(hook: hook)
    let part = try opened(fixture)
    let all = bytes(1_000_000)
    try part.append(all)
    let before = hook.calls.count
    let start = Mark.zero
    #expect(try part.reading(from: start, to: 1_000_000, rewritingFrom: UInt64(from)).run() == part.mark)
    let written = hook.calls[before...].filter { $0.kind == .write }.compactMap(\.range)
    var end = Int64(from)
    for range in written {
      #expect(range.lowerBound == end)
      end = range.upperBound
    }
    #expect(end == 1_000_000)
    #expect(try fixture.bytes(path) == all)
  }

  @Test(.enabled("needs temporary files on a disk") { try await Need.disk.isMet() })
  func whatIsOnDiskNeedsNoMemory() throws {
    let fixture = try Fixture()
    let part = try opened(fixture)
    let length = 16 << 20
    try part.append([UInt8](repeating: 7, count: length))
    try part.flush.run()
    // Where memory is scarce, some is gone already.
    #expect(try cachedBytes(of: fixture.files.path(path)) > length / 2)
    // Of a large folio, all or nothing goes.
    part.cache.forget(before: UInt64(length / 4 * 3))
    #expect(try cachedBytes(of: fixture.files.path(path)) <= length / 2)
  }

  @Test(arguments: [0, 1, 4096, 1_100_000])
  func rebuilding(length: Int) throws {
    let fixture = try Fixture()
    let part = try opened(fixture)
    let all = bytes(1_100_001)
    try part.append(all)
    let job = try jobName("a")
    let fresh = part.replaced(by: try part.rebuilding(to: UInt64(length), owner: job).run())
    #expect(fresh.inode != part.inode && fresh.length == UInt64(length))
    #expect(try fixture.bytes(path) == Array(all[..<length]))
    #expect(fixture.names("tmp") == [])
    // The old owner wakes up and writes: nobody sees it.
    try part.append([0xff])
    try part.truncate(to: 5)
    #expect(try fixture.bytes(path) == Array(all[..<length]))
    try part.remove()
    try part.setAside(job)
    #expect(fixture.names("partial") == ["a.part"] && fixture.names("failed") == [])
    #expect(try PartFile.open(job, in: try fixture.another()) == nil, "the new inode is locked")
  }

  @Test(arguments: [Call.Kind.write, .fdatasync, .rename, .read])
  func aFailedRebuildChangesNothing(kind: Call.Kind) throws {
    let armed = Switch()
    let fixture = try Fixture(hook: Probe { armed.isOn && $0.kind == kind ? .fail(.ioError) : nil })
    let part = try opened(fixture)
    try part.append(bytes(100))
    armed.turnOn()
    #expect(throws: SpoolError.self) { try part.rebuilding(to: 50, owner: jobName("a")).run() }
    #expect(try fixture.bytes(path) == bytes(100))
    #expect(fixture.names("tmp") == [])
  }

  /// A copy can take longer than the lease: a successor on another host has put its own there by then.
  @Test func aSuccessorsDataIsNotReplaced() throws {
    let fixture = try Fixture { files in
      Probe.meanwhile(.fdatasync, "tmp/a.part") {
        unlink(files.path("partial/a.part"))
        try writeFile(files.path("partial/a.part"), [7])
      }
    }
    let part = try opened(fixture)
    try part.append(bytes(100))
    let error = #expect(throws: SpoolError.self) { try part.rebuilding(to: 50, owner: jobName("a")).run() }
    #expect(error?.errno == .staleNFSFileHandle)
    #expect(try fixture.bytes(path) == [7])
    #expect(fixture.names("tmp") == [])
  }

  @Test func anothersDataIsNotOpened() throws {
    let fixture = try Fixture()
    let part = try opened(fixture)
    try part.append([1])
    let job = try jobName("a")
    #expect(try PartFile.open(job, in: try fixture.another()) == nil)
    try part.close()
    #expect(try PartFile.open(job, in: try fixture.another())?.length == 1)
  }

  @Test func whatIsNoFileOfOursIsNotOpened() throws {
    let fixture = try Fixture()
    let job = try jobName("a")
    let victim = fixture.files.path("tmp/victim")
    try writeFile(victim, [1, 2, 3])
    try #require(link(victim, fixture.files.path(path)) == 0)
    #expect(try PartFile.open(job, in: fixture.spool) == nil, "a second name: it may be a payload")
    let inode = UInt64(try #require(fileStatus(victim)).st_ino)
    var asked: [UInt64] = []
    #expect(
      try PartFile.open(job, in: fixture.spool) { asked.append($0) } == nil, "nor if the name is no temporary one")
    #expect(asked == [inode])
    try fixture.remove(path)
    try #require(symlink(victim, fixture.files.path(path)) == 0)
    #expect(try PartFile.open(job, in: fixture.spool) == nil)
    #expect(try readFile(victim) == [1, 2, 3])
    try fixture.remove(path)
    try #require(mkfifo(fixture.files.path(path), 0o600) == 0)
    #expect(try PartFile.open(job, in: fixture.spool) == nil)
  }

  @Test func settingAsideKeepsTheLatest() throws {
    let fixture = try Fixture()
    let job = try jobName("a")
    for value in [1, 2] as [UInt8] {
      let part = try opened(fixture)
      try part.append([value])
      try part.setAside(job)
      try part.setAside(job)
      #expect(fixture.names("partial") == [])
      #expect(try fixture.bytes("failed/a.part") == [value])
    }
    try JobData(fixture.spool).removeSetAside(of: job)
    try JobData(fixture.spool).removeSetAside(of: job)
    #expect(fixture.names("failed") == [])
  }

  @Test func closeIsChecked() throws {
    let fixture = try Fixture(hook: Probe { $0.kind == .close ? .fail(.ioError) : nil })
    let part = try opened(fixture)
    #expect(throws: SpoolError.self) { try part.close() }
    try part.close()
  }
}

extension Probe {
  /// Cuts the write before the `nth` to a path to 4 bytes, and fails the `nth`.
  static func failing(_ part: String, nth: Int, with errno: Errno) -> Probe {
    let seen = Counter()
    return Probe { call in
      guard call.kind == .write, call.path.contains(part) else { return nil }
      let number = seen.next()
      return number == nth ? .fail(errno) : number == nth - 1 ? .short(4) : nil
    }
  }
}
