internal import CLinux
internal import Glibc
package import SystemPackage

/// What the file system of a spool can do, as far as the protocol depends on it: found out by ``FileSystemTrial``. It
/// can do all until it is tried.
package struct FileSystemTraits: Sendable, Equatable {
  /// flock(2) on two descriptors of one file.
  package enum Locks: Sendable, Equatable {
    case exclude
    /// The same, but an exclusive lock needs a descriptor that is open for writing, as on NFS.
    case excludeWriters
    /// A lock succeeds although another descriptor has it.
    case ineffective
    case missing(Errno)
  }

  /// F_SETLEASE (fcntl(2)) on a file that this process has open for writing.
  package enum Leases: Sendable, Equatable {
    /// It says that the file is being written.
    case showWriters
    /// It succeeds nevertheless.
    case blind
    case missing
  }

  package let kind: FileSystemKind
  /// Its type as proc_pid_mountinfo(5) has it, such as `fuse.bindfs`.
  package let type: String
  /// Whether names may contain a colon, as those of claims do.
  package var takesColons = true
  /// What claims can rely on (flock(2)).
  package var locks = Locks.exclude
  /// What a job that is still being written can be told by (F_SETLEASE).
  package var leases = Leases.showWriters
  package var renamesWithoutReplacing = true
  package var exchangesNames = true
  package var links = true
  /// O_TMPFILE; see open(2).
  package var unnamedFiles = true
  /// Seconds by which the clock that sets the times of files is ahead of this host's.
  package var clockOffset: Int64 = 0
  /// Seconds by which the time of a file that was touched is ahead of the one that it got when it was made: on some
  /// file systems one is the server's and the other the client's.
  package var touchOffset: Int64 = 0

  /// Whether a lease that is granted proves that nobody writes the file.
  package var showsWriters: Bool { leases == .showWriters && kind.leaseShowsAllWriters }

  /// Why no worker can use it, each with what to do; empty if workers can.
  package var obstacles: [String] {
    let elsewhere = "make the spool on another file system"
    if !takesColons { return ["names cannot contain a colon, which the names of claims do: \(elsewhere)"] }
    var found: [String] = []
    switch locks {
    case .exclude, .excludeWriters: break
    case .ineffective:
      found.append("a second lock of the same file succeeds, so two workers could run one job: \(elsewhere)")
    case .missing(let errno):
      found.append("files cannot be locked (flock: \(errno)): mount it with locks, or \(elsewhere)")
    }
    if !renamesWithoutReplacing, !links {
      found.append("a file cannot be moved without replacing another one: \(elsewhere)")
    }
    return found
  }

  /// What workers do differently there, in plain words; empty if nothing.
  package var limits: [String] {
    var found: [String] = []
    if !showsWriters {
      let settling = FileStatus.settlingTime
      found.append(
        "nobody can see whether a program still writes a file: a dropped job starts when it has not changed for"
          + " \(settling) s")
    } else if kind.leases == .granted {
      found.append(
        "the server may leave open whether a program still writes a file: then a dropped job starts when it has not"
          + " changed for \(FileStatus.settlingTime) s")
    }
    if !kind.isLocal {
      found.append("changes by others are not reported: the spool is read again every few seconds (--rescan)")
    }
    if clockOffset != 0 {
      let side = clockOffset > 0 ? "ahead of" : "behind"
      found.append(
        "its clock is \(clockOffset.magnitude) s \(side) this host's: its clock counts for the times of jobs")
    }
    if kind.timesAreOfHosts {
      found.append(
        "each host sets the times of files by its own clock: set the clocks of all hosts by NTP, and the volume's"
          + " option features.ctime to off")
    }
    if touchOffset != 0 {
      found.append(
        "the times of files come from two clocks, \(touchOffset.magnitude) s apart: set the clocks of all hosts by NTP")
    }
    return found
  }

  package var lines: [(name: String, value: String)] {
    [
      ("locks", lockText), ("writers", writerText),
      ("moves", renamesWithoutReplacing ? "never replace a file" : "never replace a file, by link and unlink"),
      ("exchange", exchangesNames ? "two files can exchange their names" : "two files cannot exchange their names"),
      ("unnamed files", unnamedFiles ? "can be made" : "cannot be made"),
      (
        "clock",
        clockOffset == 0 ? "the same as this host's" : "\(clockOffset > 0 ? "+" : "")\(clockOffset) s from this host's"
      ),
      ("changes", kind.isLocal ? "all are reported (inotify)" : "those by others are not reported"),
    ]
  }

  private var lockText: String {
    switch locks {
    case .exclude: "exclude others"
    case .excludeWriters: "exclude others; an exclusive lock needs a file that is open for writing"
    case .ineffective: "exclude nobody"
    case .missing(let errno): "do not work (\(errno))"
    }
  }

  private var writerText: String {
    switch leases {
    case .showWriters: showsWriters ? "all are seen (leases)" : "those by other ways to the file are not seen"
    case .blind: "are not seen, although leases are granted"
    case .missing: "are not seen: there are no leases"
    }
  }
}

/// Tries a file system with two files in `tmp/`, which no worker looks at.
package struct FileSystemTrial {
  private let spool: Spool
  private let system: System
  private let one: Path
  private let other: Path

  package init(_ spool: Spool) {
    self.spool = spool
    system = spool.system
    one = spool.temporary(FileName("trial"))
    other = spool.temporary(FileName("trial"))
  }

  /// Harmless to workers.
  /// - Throws: ``SpoolError`` where it cannot be tried, such as on a full disk.
  package func run() throws(SpoolError) -> FileSystemTraits {
    var traits = FileSystemTraits(
      kind: spool.kind, type: try FileSystemKind.mountedType(of: spool.root, spool.system) ?? spool.kind.name)
    do throws(SpoolError) {
      (traits.clockOffset, traits.touchOffset) = try spool.clockOffsets()
    } catch  where error.call == .create && error.errno == .invalidArgument {
      traits.takesColons = false
      return traits
    }
    defer { for path in [one, other] { try? system.unlink(spool.root, path) } }
    _ = try system.createNew(spool.root, one)
    traits.leases = try leases()
    traits.locks = try locks()
    _ = try system.createNew(spool.root, other)
    traits.renamesWithoutReplacing = try renamesWithoutReplacing()
    traits.exchangesNames = try works { () throws(SpoolError) in try system.exchange(spool.root, one, other) }
    traits.links = try canLink()
    traits.unnamedFiles = try works { () throws(SpoolError) in _ = try system.openUnnamed(spool.root, Path(.tmp)) }
    return traits
  }

  private func leases() throws(SpoolError) -> FileSystemTraits.Leases {
    try leases(beside: system.open(spool.root, one, O_RDWR | O_NOFOLLOW))
  }

  private func leases(beside writer: borrowing OwnedFile) throws(SpoolError) -> FileSystemTraits.Leases {
    switch try system.open(spool.root, one, O_RDONLY | O_NOFOLLOW).askLease() {
    case .granted: .blind
    case .refused: .showWriters
    case .unknown: .missing
    }
  }

  private func locks() throws(SpoolError) -> FileSystemTraits.Locks {
    var first = try system.open(spool.root, one, O_RDWR | O_NOFOLLOW)
    do throws(SpoolError) {
      return try first.lock() ? try locks(beside: first) : .ineffective
    } catch  where error.call == .lock {
      return .missing(error.errno)
    }
  }

  private func locks(beside first: borrowing OwnedFile) throws(SpoolError) -> FileSystemTraits.Locks {
    let second = try system.open(spool.root, one, O_RDONLY | O_NOFOLLOW)
    do throws(SpoolError) {
      return try second.tryLock() ? .ineffective : .exclude
    } catch  where error.errno == .badFileDescriptor {
      return try second.tryLock(LOCK_SH) ? .ineffective : .excludeWriters
    }
  }

  private func renamesWithoutReplacing() throws(SpoolError) -> Bool {
    let free = spool.temporary(FileName("trial"))
    do throws(SpoolError) {
      // Where both names exist, the kernel refuses the move without asking the file system.
      try system.renameNoReplace(spool.root, one, free)
      try system.rename(spool.root, free, one)
      // Has to be refused.
      try system.renameNoReplace(spool.root, one, other)
    } catch  where error.errno == .fileExists {
      return true
    } catch  where error.isUnknownRename {
      return false
    }
    // It replaced the other file. That one is made again for what follows.
    _ = try system.createNew(spool.root, one)
    return false
  }

  private func canLink() throws(SpoolError) -> Bool {
    let third = spool.temporary(FileName("trial"))
    let works = try works { () throws(SpoolError) in try system.link(spool.root, one, spool.root, third) }
    if works { try system.unlink(spool.root, third) }
    return works
  }

  /// False where the file system does not support the call.
  private func works(_ body: () throws(SpoolError) -> Void) throws(SpoolError) -> Bool {
    try orNil(body()) { Self.unsupported.contains($0.errno) } != nil
  }

  private static let unsupported: Set<Errno> = [
    .invalidArgument, .noFunction, .notSupported, .notSupportedOnSocket, .notPermitted, .isDirectory,
  ]
}

extension Timestamp {
  /// Seconds by which this time is outside of the span in which it was taken by another clock; 0 for less than two,
  /// which may be rounding.
  package func offset(from before: Timestamp, to after: Timestamp) -> Int64 {
    let offset = self < before ? seconds - before.seconds : max(0, seconds - after.seconds)
    return offset.magnitude < 2 ? 0 : offset
  }
}
