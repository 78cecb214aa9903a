internal import Spool
internal import SystemPackage

/// The directories that hold jobs to run, read a piece at a time: what is found is worked on before the rest is read.
///
/// A pass that began after a change sees it, unless things moved meanwhile. So who has to know that nothing is left requests passes, and waits for the end of all.
struct Scan {
  /// Dead workers' claims are seen first, so that one that only wants its last move gets it.
  private static let directories: [Directory] = [.cur, .partial, .new]

  private var streams: [(directory: Directory, stream: DirectoryStream)] = []
  private var requested: Set<Directory> = []
  private var turn = 0

  /// There are names left to read.
  var isUnderWay: Bool { !streams.isEmpty }
  /// All passes that were requested have come to their end.
  var isSettled: Bool { streams.isEmpty && requested.isEmpty }
  /// A pass was requested while the one before was under way, which is over by now.
  var canBegin: Bool { requested.contains { !isBeingRead($0) } }

  private func isBeingRead(_ directory: Directory) -> Bool { streams.contains { $0.directory == directory } }

  /// Wants a pass over each directory, for what stands there from now on.
  mutating func request() { requested = Set(Self.directories) }

  /// Begins the passes that were requested. One that is under way comes to its end first, or a long one never would.
  /// - Returns: the directories that are read from their start now.
  mutating func begin(_ spool: Spool) throws(SpoolError) -> [Directory] {
    let begun = Self.directories.filter { requested.contains($0) && !isBeingRead($0) }
    for directory in begun {
      streams.append((directory, try spool.stream(directory)))
      requested.remove(directory)
    }
    return begun
  }

  /// Forgets all, as where the directories are gone.
  mutating func abandon() { self = Scan() }

  /// The next names, at most `count`, from the directories in turn; fewer only at the end.
  mutating func next(_ count: Int) throws(SpoolError) -> [(directory: Directory, name: FileName)] {
    var found: [(directory: Directory, name: FileName)] = []
    while found.count < count, !streams.isEmpty {
      let isClaims = streams.contains { $0.directory == .cur }
      turn = isClaims ? streams.firstIndex { $0.directory == .cur }! : (turn + 1) % streams.count
      let (directory, stream) = streams[turn]
      if let name = try stream.next() {
        if !name.isIgnored { found.append((directory, name)) }
      } else {
        streams.remove(at: turn)
      }
    }
    return found
  }
}

extension Worker {
  /// Candidates that are looked ahead at: oldest first and fair between hosts among so many.
  private static let horizon = 4000
  private static let piece = 1000

  /// Looks at all that stands there from now on.
  func rescan() throws(SpoolError) {
    scan.request()
    isScanFresh = true
    isSomethingPassedOver = false
    try beginPasses()
  }

  private func beginPasses() throws(SpoolError) {
    let begun = try scan.begin(spool)
    if begun.isEmpty { return }
    scanBegan = LoopExecutor.milliseconds()
    scanTook = 0
    backlog.removeAll { begun.contains($0.origin) }
    spaceWait.removeAll()
    if begun.contains(.partial) { nextDue = nil }
  }

  /// Whether a rescan is worth its time while jobs run: where the last pass took long, most of the time is for the transfers.
  var mayRescan: Bool { !isRunning || LoopExecutor.milliseconds() - scanBegan >= 10 * scanTook }

  /// There is more to read at once.
  var canLookAhead: Bool { scan.canBegin || scan.isUnderWay && backlog.count <= Self.horizon - Self.piece }

  /// Reads on until there is enough to choose from, but not for long: transfers wait meanwhile.
  func lookAhead() throws(SpoolError) {
    if scan.canBegin { try beginPasses() }
    guard canLookAhead else { return }
    let start = LoopExecutor.milliseconds()
    var found: [Backlog.Candidate] = []
    var names = Self.horizon
    let now = Timestamp.now().seconds
    while scan.isUnderWay, names > 0, backlog.count + found.count <= Self.horizon - Self.piece {
      for (directory, name) in try scan.next(Self.piece) {
        if let candidate = try candidate(directory, name, now) { found.append(candidate) }
      }
      names -= Self.piece
    }
    backlog.add(found)
    scanTook += LoopExecutor.milliseconds() - start
  }

  /// Where all that is looked ahead at waits for hosts that have no room: reads on for one that has, and passes over the others' jobs, which the next pass finds
  /// again. A twentieth of the loop's time at most: a million jobs of a busy host are passed in some ten minutes.
  /// - Returns: whether it found any.
  func searchOn() throws(SpoolError) -> Bool {
    let start = LoopExecutor.milliseconds()
    guard scan.isUnderWay, !canLookAhead, start >= nextSearch else { return false }
    var found: [Backlog.Candidate] = []
    let now = Timestamp.now().seconds
    for (directory, name) in try scan.next(250) {
      guard let candidate = try candidate(directory, name, now) else { continue }
      if hasRoom(prospect(of: candidate).host) { found.append(candidate) } else { isSomethingPassedOver = true }
    }
    backlog.add(found)
    let end = LoopExecutor.milliseconds()
    nextSearch = end + 19 * (end - start + 1)
    return !found.isEmpty
  }

  /// Takes in what inotify told of; a name that is claimed by now costs one lost claim.
  func take(_ changes: [SpoolWatch.Change]) throws(SpoolError) {
    var seen: Set<SpoolWatch.Change> = []
    let now = Timestamp.now().seconds
    for change in changes where change.directory != .cur && !change.name.isIgnored && seen.insert(change).inserted {
      if backlog.count >= Self.horizon {
        isSomethingPassedOver = true
      } else if let candidate = try candidate(change.directory, change.name, now) {
        backlog.append(candidate)
      }
    }
  }

  /// nil for what is gone, is a job's data, or is not due; notes when it will be.
  private func candidate(_ directory: Directory, _ name: FileName, _ now: Int64) throws(SpoolError)
    -> Backlog.Candidate?
  {
    if directory == .partial, name.isData { return nil }
    let found: FileStatus?
    do throws(SpoolError) {
      found = try spool.status(directory, name)
    } catch  where error.errno == .permissionDenied && directory == .new {
      // Only its own look is denied, or the directory could not have been read: the claim says so.
      return Backlog.Candidate(name: name, origin: directory, modified: 0)
    }
    guard let status = found else { return nil }
    if directory == .partial, !Spool.isDue(status.modified, at: now) {
      nextDue = min(nextDue ?? .max, status.modified)
      return nil
    }
    // A time from the future would put it behind all that is dropped until then.
    return Backlog.Candidate(name: name, origin: directory, modified: min(status.modified, now))
  }
}
