internal import CLinux
internal import Glibc
internal import Synchronization
internal import SystemPackage

/// Tries what two mounts of one spool show each other, with files in `tmp/`, which no worker looks at.
struct PeerTrial {
  private let here: Spool
  private let there: Spool
  private static let races = 20

  init(_ here: Spool, _ there: Spool) { (self.here, self.there) = (here, there) }

  func run() throws(SpoolError) -> PeerTraits {
    var traits = PeerTraits()
    let path = name()
    let file = try here.system.create(here.root, path, O_RDWR | O_EXCL | O_NOFOLLOW)
    defer { try? here.system.unlink(here.root, path) }
    if try !isSeen(path, by: there) { traits.areTwoSpools = try !haveCommonTimes() }
    if traits.areTwoSpools { return traits }
    traits.appearsAfter = try wait { () throws(SpoolError) in try isSeen(path, by: there) }
    guard traits.appearsAfter != nil else { return traits }
    let made = Timestamp(seconds: try file.status().modified)
    traits.clockOffset = try clockOffset(from: made)
    traits.writersAreSeen = try isRefused(path, beside: file) { (other) throws(SpoolError) in
      try other.probeLease()
    }
    traits.locksAreSeen = try seesLock(path)
    try race(&traits)
    traits.goneAfter = try goneAfter()
    return traits
  }

  private func name() -> Path { here.temporary(FileName("peer")) }

  /// Whether a directory was last changed at the same time on both. The directories of one spool are: at least those
  /// that are rarely changed, such as `hold`.
  private func haveCommonTimes() throws(SpoolError) -> Bool {
    for directory in Directory.allCases {
      if let ours = try here.stamp(of: directory), let theirs = try there.stamp(of: directory),
        ours.isOfSameTime(as: theirs)
      {
        return true
      }
    }
    return false
  }

  private func isSeen(_ path: Path, by spool: Spool) throws(SpoolError) -> Bool {
    do throws(SpoolError) {
      _ = try spool.system.status(spool.root, path)
      return true
    } catch  where error.errno == .noSuchFileOrDirectory {
      return false
    }
  }

  /// - Returns: after how many milliseconds `isTrue` was true; nil if it was not in time.
  private func wait(until isTrue: () throws(SpoolError) -> Bool) throws(SpoolError) -> Int64? {
    let began = Self.milliseconds()
    while true {
      if try isTrue() { return Self.milliseconds() - began }
      if Self.milliseconds() - began > PeerTraits.patience { return nil }
      usleep(20_000)
    }
  }

  private static func milliseconds() -> Int64 {
    var clock = timespec()
    clock_gettime(CLOCK_MONOTONIC, &clock)
    return Int64(clock.tv_sec) * 1000 + Int64(clock.tv_nsec) / 1_000_000
  }

  private func clockOffset(from made: Timestamp) throws(SpoolError) -> Int64 {
    let before = Timestamp.now()
    let theirs = try there.fileSystemTime()
    let elapsed = Timestamp.now().seconds - before.seconds
    // The wait for the name took time as well.
    let now = try here.fileSystemTime()
    return theirs.offset(from: made, to: max(made, now) + max(0, elapsed))
  }

  /// - Parameter file: what this host has open for writing meanwhile.
  private func isRefused(
    _ path: Path, beside file: borrowing OwnedFile, _ call: (borrowing OwnedFile) throws(SpoolError) -> Void
  ) throws(SpoolError) -> Bool {
    let other = try there.system.open(there.root, path, O_RDONLY | O_NOFOLLOW)
    do throws(SpoolError) {
      try call(other)
      return false
    } catch  where error.errno == .resourceTemporarilyUnavailable {
      return true
    } catch  where error.call == .lease {
      return false
    }
  }

  private func seesLock(_ path: Path) throws(SpoolError) -> Bool {
    var file = try here.system.open(here.root, path, O_RDWR | O_NOFOLLOW)
    guard try file.lock() else { return false }
    return try seesLock(path, beside: file)
  }

  private func seesLock(_ path: Path, beside file: borrowing OwnedFile) throws(SpoolError) -> Bool {
    try !there.system.open(there.root, path, O_RDWR | O_NOFOLLOW).tryLock()
  }

  /// As two workers claim a job: each renames the file to a name of its own.
  private func race(_ traits: inout PeerTraits) throws(SpoolError) {
    for _ in 0..<Self.races {
      let (source, ours, theirs) = (name(), name(), name())
      _ = try here.system.create(here.root, source, O_RDWR | O_EXCL | O_NOFOLLOW)
      guard try wait(until: { () throws(SpoolError) in try isSeen(source, by: there) }) != nil else { continue }
      let other = Background { [there] () throws(SpoolError) in
        try there.system.rename(there.root, source, theirs)
      }
      let weWon = try wins { () throws(SpoolError) in try here.system.rename(here.root, source, ours) }
      let theyWon = try wins { () throws(SpoolError) in try other.wait() }
      traits.races += 1
      if weWon && theyWon { traits.doubles += 1 }
      if !weWon && !theyWon { traits.losses += 1 }
      for path in [source, ours, theirs] { try? here.system.unlink(here.root, path) }
    }
  }

  private func wins(_ rename: () throws(SpoolError) -> Void) throws(SpoolError) -> Bool {
    do throws(SpoolError) {
      try rename()
      return true
    } catch  where error.isGone {
      return false
    }
  }

  private func goneAfter() throws(SpoolError) -> Int64? {
    let path = name()
    _ = try here.system.create(here.root, path, O_RDWR | O_EXCL | O_NOFOLLOW)
    _ = try wait { () throws(SpoolError) in try isSeen(path, by: there) }
    try here.system.unlink(here.root, path)
    return try wait { () throws(SpoolError) in try !isSeen(path, by: there) }
  }
}

extension Spool {
  /// Tries what this spool and the same spool on another mount show each other. Harmless to workers; takes at most
  /// about a minute.
  /// - Throws: ``SpoolError``.
  package func tryPeer(_ peer: Spool) throws(SpoolError) -> PeerTraits { try PeerTrial(self, peer).run() }
}
