internal import CLinux
internal import Glibc

/// What two mounts of one spool show each other. Found out by ``PeerTrial``.
package struct PeerTraits: Sendable, Equatable {
  /// Whether the directories of the two have different times, so they are two spools.
  package var areTwoSpools = false
  /// Milliseconds until a file that was made on one is seen on the other; nil if it was not seen in time.
  package var appearsAfter: Int64?
  /// The same for the removal of a file that the other has seen.
  package var goneAfter: Int64?
  package var locksAreSeen = true
  /// Whether a lease is refused on the other while one has the file open for writing.
  package var writersAreSeen = true
  /// How many files both tried to rename at the same time.
  package var races = 0
  /// In how many of these cases both were told that they had succeeded.
  package var doubles = 0
  /// In how many of them neither has the file.
  package var losses = 0
  /// Seconds by which the time of a file that the peer made is ahead of one that was made here.
  package var clockOffset: Int64 = 0

  /// Until it is tried, nothing is lost or done twice, and no file has been seen.
  package init() {}

  /// Milliseconds that a name may take to be seen.
  static let patience: Int64 = 30_000

  /// Why the two cannot share a spool; empty if they can.
  package var obstacles: [String] {
    if areTwoSpools { return ["these are two spools: name the same one as each host has it mounted"] }
    if appearsAfter == nil {
      return [
        "what is made on one was not seen on the other within \(Self.patience / 1000) s: mount the same directory, or"
          + " mount it without caching names"
      ]
    }
    if doubles + losses > 0 {
      return [
        "of \(races) files that both renamed at the same time, \(doubles) went to both and \(losses) to neither, so one"
          + " job could run twice or be lost: use another file system"
      ]
    }
    return []
  }

  /// What workers do differently, in plain words; empty if nothing.
  package var limits: [String] {
    var found: [String] = []
    if !locksAreSeen {
      found.append(
        "locks are not seen by the other: workers of other hosts are told alive by their heartbeats alone, so give each"
          + " host its own name; --per-host and --limit-rate hold for each host by itself")
    }
    if !writersAreSeen { found.append("the other does not see whether a program still writes a file") }
    if let appearsAfter, appearsAfter >= 2000 {
      found.append("a new file is seen after \(appearsAfter) ms: mount it with a shorter cache of names")
    }
    if goneAfter.map({ $0 >= 2000 }) ?? true {
      let time = goneAfter.map { "only after \($0) ms" } ?? "not within \(Self.patience / 1000) s"
      found.append("that a file is gone is seen \(time): mount it with a shorter cache of names")
    }
    if clockOffset != 0 {
      found.append(
        "files made by the other get times that differ by \(clockOffset.magnitude) s: set all hosts' clocks by NTP")
    }
    return found
  }

  package var lines: [(name: String, value: String)] {
    if areTwoSpools { return [] }
    return [
      ("a new file", appearsAfter.map { "is seen after \($0) ms" } ?? "is not seen"),
      ("a removed file", goneAfter.map { "is gone after \($0) ms" } ?? "is still seen"),
      ("locks", locksAreSeen ? "exclude the other" : "do not exclude the other"),
      ("writers", writersAreSeen ? "are seen by the other" : "are not seen by the other"),
      ("renames", "\(races) files renamed by both: \(doubles) twice, \(losses) lost"),
      ("clock", clockOffset == 0 ? "the same" : "\(clockOffset) s apart"),
    ]
  }
}

/// Tries what two mounts of one spool show each other, with files in `tmp/`, which no worker looks at.
package struct PeerTrial {
  private let here: Spool
  private let there: Spool
  private static let races = 20

  package init(_ here: Spool, _ there: Spool) { (self.here, self.there) = (here, there) }

  /// Harmless to workers; takes at most about a minute.
  package func run() throws(SpoolError) -> PeerTraits {
    var traits = PeerTraits()
    let path = name()
    let file = try here.system.createNew(here.root, path)
    defer { try? here.system.unlink(here.root, path) }
    if try !isSeen(path, by: there) { traits.areTwoSpools = try !haveCommonTimes() }
    if traits.areTwoSpools { return traits }
    traits.appearsAfter = try wait { () throws(SpoolError) in try isSeen(path, by: there) }
    guard traits.appearsAfter != nil else { return traits }
    let made = Timestamp(seconds: try file.status().modified)
    traits.clockOffset = try clockOffset(from: made)
    traits.writersAreSeen = try isLeaseRefused(path, beside: file)
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
    try spool.system.statusIfPresent(spool.root, path) != nil
  }

  /// - Returns: after how many milliseconds `isTrue` was true; nil if it was not in time.
  private func wait(until isTrue: () throws(SpoolError) -> Bool) throws(SpoolError) -> Int64? {
    let began = Host.current.milliseconds()
    while true {
      if try isTrue() { return Host.current.milliseconds() - began }
      if Host.current.milliseconds() - began > PeerTraits.patience { return nil }
      Host.current.wait(milliseconds: 20)
    }
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
  private func isLeaseRefused(_ path: Path, beside file: borrowing OwnedFile) throws(SpoolError) -> Bool {
    try there.system.open(there.root, path, O_RDONLY | O_NOFOLLOW).askLease() == .refused
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
      _ = try here.system.createNew(here.root, source)
      guard try wait(until: { () throws(SpoolError) in try isSeen(source, by: there) }) != nil else { continue }
      let other = Answer(of: { [there] () throws(SpoolError) in try there.system.rename(there.root, source, theirs) })
      let weWon = try orNil(here.system.rename(here.root, source, ours), where: \.isGone) != nil
      let theyWon = try orNil(other.wait(), where: \.isGone) != nil
      traits.races += 1
      if weWon && theyWon { traits.doubles += 1 }
      if !weWon && !theyWon { traits.losses += 1 }
      for path in [source, ours, theirs] { try? here.system.unlink(here.root, path) }
    }
  }

  private func goneAfter() throws(SpoolError) -> Int64? {
    let path = name()
    _ = try here.system.createNew(here.root, path)
    _ = try wait { () throws(SpoolError) in try isSeen(path, by: there) }
    try here.system.unlink(here.root, path)
    return try wait { () throws(SpoolError) in try !isSeen(path, by: there) }
  }
}
