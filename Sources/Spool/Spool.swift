internal import CLinux
internal import Glibc
internal import Synchronization
internal import SystemPackage

/// An open spool directory. All paths and renames of the protocol are in this module. Every path is resolved from this
/// one open directory, so that directories that are removed and made again are found again.
package final class Spool: Sendable {
  /// Bytes of a job file with its journal; a longer file is no job.
  package static let maximumJobFile = 16 << 20
  /// The directory in `done/` that has the archived receipts.
  static let archiveName = FileName("archive")

  /// As the user named it.
  package let location: String
  /// This process, as the names of its claims say it.
  package let owner: WorkerID
  /// The kernel's id of this boot (random(4)), which shows whether the machine was rebooted since.
  package let boot: String
  let system: System
  let directory: SharedFile
  let root: Int32
  /// Where `defaults` and `hooks` are; nil where there are none.
  let settings: Settings?
  private let settingsPlaces: [String]?
  /// Whether it is one that `spoolrun get` has made where its files go.
  package let isBesideFiles: Bool
  let identity: FileStatus
  /// The user whose workers write the journals: the owner of `cur/`, where nobody else can put a file.
  let journalUser: UInt32
  let user = geteuid()
  package let kind: FileSystemKind
  let agreedLease = Atomic(standardLease)
  let clockOffset = Atomic<Int64>(0)
  let clockChanges = Mutex(ClockChanges())
  let touchesNeedTime = Atomic(false)
  /// The spool's file system has refused RENAME_NOREPLACE. It is not asked again: on a network file system the vain
  /// call costs three round trips.
  let lacksNoReplace = Atomic(false)
  /// Whether two names of a file are seen to be one, where they might not; nil until it is tried.
  let showsLinks = Mutex<Bool?>(nil)
  /// See ``provide(_:)``.
  let hasFlushedNames = Atomic(false)
  /// The names in `cur/` by which this process has claims.
  ///
  /// A person may remove the file of a claim and drop another job of its name before the worker notices. If that one
  /// got the same name in `cur/`, each of the two claims would move and rename the other's file.
  let namesInHand = Mutex(Set<FileName>())
  /// Claims of other workers whose times say nothing.
  let sights = Mutex(ClaimSights())

  struct Settings {
    let location: String
    let directory: SharedFile
  }

  /// Opens the spool at `location`.
  /// - Parameter kind: the type of its file system; nil to ask the kernel.
  /// - Parameter settings: of a spool of `spoolrun get`: the first of these directories that exists has `defaults` and
  ///   `hooks`; nil for the spool itself.
  /// - Parameter isBesideFiles: see ``isBesideFiles``.
  /// - Throws: ``SpoolError``: ENOENT where there is none, ENOTDIR where it is something else or lacks one of its
  ///   directories.
  package init(
    _ location: String, owner: WorkerID, boot: String, system: System = System(), kind: FileSystemKind? = nil,
    settings: [String]? = nil, isBesideFiles: Bool = false
  ) throws(SpoolError) {
    (self.location, self.boot, self.system) = (location, boot, system)
    directory = try system.open(AT_FDCWD, Path(location), O_RDONLY | O_DIRECTORY).shared()
    root = directory.number
    identity = try directory.status()
    self.isBesideFiles = isBesideFiles
    settingsPlaces = settings
    if let settings {
      self.settings = try Settings.first(of: settings, system)
    } else {
      self.settings = Settings(location: location, directory: directory)
    }
    if let kind {
      self.kind = kind
    } else {
      let kind = FileSystemKind(type: try directory.fileSystemType())
      let mounted = kind.sharing == .program ? try FileSystemKind.mountedType(of: root, system) : nil
      self.kind = mounted.map { kind.mounted(as: $0) } ?? kind
    }
    self.owner = owner.seated(boot: boot, device: identity.device, isLocal: self.kind.isLocal)
    journalUser = try Self.ownerOfClaims(location, root, system)
    // A process that only looks takes the usual one where none is noted, or the note cannot be read.
    if let noted = try? readLease() { agreedLease.store(noted, ordering: .relaxed) }
  }

  /// - Returns: the owner of `cur/`.
  private static func ownerOfClaims(_ location: String, _ root: Int32, _ system: System) throws(SpoolError) -> UInt32 {
    var owner: UInt32 = 0
    for directory in Directory.allCases where directory != .files && !directory.isOptional {
      let status = try system.statusIfPresent(root, Path(directory))
      guard let status, status.isDirectory else {
        throw SpoolError(
          call: .open, path: "\(escaped(location))/\(directory.rawValue)",
          errno: status == nil ? .noSuchFileOrDirectory : .notDirectory)
      }
      if directory == .cur { owner = status.owner }
    }
    return owner
  }

  /// Whether a file is gone is asked for after an error that a missing directory of the spool causes as well.
  /// - Throws: ``SpoolError`` that names the directory.
  package func checkDirectories() throws(SpoolError) { _ = try Self.ownerOfClaims(location, root, system) }

  /// The directory that paths in `defaults` are relative to.
  package var settingsLocation: String { settings?.location ?? location }

  /// Whether the spool's path still leads to the directory that is open.
  package func isInPlace() throws(SpoolError) -> Bool {
    // Through a link as well.
    let path = Path("\(location)/.")
    return try orNil(system.status(AT_FDCWD, path).isSameFile(as: directory.status())) { $0.isOfMissingSpool(on: kind) }
      ?? false
  }

  /// nil where the spool is gone: the last command of a get takes its own away.
  @discardableResult
  package func unlessGone<Value>(_ value: @autoclosure () throws(SpoolError) -> Value?) throws(SpoolError) -> Value? {
    try orNil(value()) { isBesideFiles && $0.errno == .noSuchFileOrDirectory }
  }

  /// The spool that the path leads to now; nil where there is none, or some of its directories are still missing, or
  /// where only `spoolrun get` may open one.
  /// - Throws: ``SpoolError``, EPERM where it belongs to another user than this one: whoever can move a spool away
  ///   could have this process work in one of theirs.
  package func reopened() throws(SpoolError) -> Spool? {
    if isBesideFiles { return nil }
    let next = try orNil(Spool(location, owner: owner, boot: boot, system: system, settings: settingsPlaces)) {
      $0.isOfMissingSpool(on: kind)
    }
    guard let next else { return nil }
    if next.identity.owner == identity.owner { return next }
    throw SpoolError(
      call: .open, path: escaped(location), errno: .notPermitted,
      reason: "another spool has taken its place, of user \(next.identity.owner) and not of user \(identity.owner)")
  }

  /// Creates the directories of a spool. Existing directories are not changed.
  package static func create(_ location: String, system: System = System()) throws(SpoolError) {
    try system.makeDirectoryIfMissing(AT_FDCWD, Path(location))
    let reached = try system.reach(Path(location))
    for directory in Directory.allCases { try system.makeDirectoryIfMissing(reached.file.number, Path(directory)) }
    try reached.file.fsync()
  }

  /// Begins to read `directory`; gives ignored names as well. One that is optional and not there is empty. The archives
  /// in `done/` are left out.
  package func stream(_ directory: Directory) throws(SpoolError) -> DirectoryStream {
    do throws(SpoolError) {
      let file = try system.open(root, Path(directory), O_RDONLY | O_DIRECTORY)
      return DirectoryStream(file, without: directory == .done ? Spool.archiveName : nil)
    } catch  where directory.isOptional && error.errno == .noSuchFileOrDirectory {
      return DirectoryStream()
    }
  }

  /// The names in `directory` without a leading dot. A file that moves meanwhile may be missed or listed twice
  /// (readdir(3)).
  package func list(_ directory: Directory) throws(SpoolError) -> [FileName] {
    try stream(directory).names().filter { !$0.isIgnored }
  }

  /// The status of a file; nil when there is none of that name, or can be none: a person may name `x/`, and a dropped
  /// file may have a name to which `.part` cannot be added.
  package func status(_ directory: Directory, _ name: FileName) throws(SpoolError) -> FileStatus? {
    try system.statusIfPresent(root, Path(directory, name))
  }

  /// When names in `directory` last changed, in seconds since the epoch; nil where there is no such directory.
  package func modified(_ directory: Directory) throws(SpoolError) -> Int64? {
    try system.statusIfPresent(root, Path(directory))?.modified
  }

  /// What every change of the names in `directory` changes, whichever host makes it; nil where there is no such
  /// directory.
  package func stamp(of directory: Directory) throws(SpoolError) -> FileStatus.Stamp? {
    try orNil(system.stampOfServer(root, Path(directory)), on: .noSuchFileOrDirectory)
  }

  /// Makes the names in `directory` durable: a file's own fsync does not cover its name (fsync(2)).
  package func flush(_ directory: Directory) -> Flush {
    Flush(.directory(directory), device: identity.device) { [system, spool = self.directory] () throws(SpoolError) in
      try system.open(spool.number, Path(directory), O_RDONLY | O_DIRECTORY).fsync()
    }
  }

  /// Makes durable that a job's file has lost its former names, before a copy takes its place. btrfs keeps no order
  /// between renames of different files: after a power cut the copy could be here, and the old file in `new/` again, a
  /// second job.
  ///
  /// Where the job did not come from there now, somebody may still have removed that name of it only a moment ago
  /// (``JobMoves/completeInterruptedMove(at:)``).
  /// - Parameter origin: nil where nobody knows it: then in any directory.
  func flushFormerNames(_ directory: Directory, from origin: Directory?) throws(SpoolError) {
    let all = origin == nil && !kind.ordersNames ? Directory.ofJobs : []
    for each in Directory.allCases
    where each == directory || each == origin || origin?.takesNewJobs != true && each.takesNewJobs
      || all.contains(each)
    {
      _ = try orNil(flush(each).run(), on: .noSuchFileOrDirectory)
    }
  }

  /// - Parameter kept: a name that it has, unless that goes meanwhile. Of a file with thousands of names, not each one
  ///   must be looked for among all the others.
  func hasOtherName(_ status: FileStatus, than path: Path, kept: Path? = nil) throws(SpoolError) -> Bool {
    if let kept, kept != path, try system.statusIfPresent(root, kept)?.isSameFile(as: status) == true { return true }
    guard let name = path.name else { return false }
    let job = ClaimName(name)?.job ?? JobName(unchecked: name)
    // A name that a person moves on while it is looked for may escape one look.
    for directory in Directory.ofJobs + Directory.ofJobs {
      if try names(of: status, like: job, in: directory).contains(where: { Path(directory, $0) != path }) {
        return true
      }
    }
    return false
  }

  /// The names of a job's file in a directory. They may have any number, see ``JobSearch/number(ofTry:)``, or none.
  func names(of status: FileStatus, like job: JobName, in directory: Directory) throws(SpoolError) -> [FileName] {
    // A person may have left the owner on, also of a job that was claimed by such a name.
    func bare(_ name: FileName) -> FileName {
      guard let claim = ClaimName(name), claim.owner != nil else { return name }
      return bare(claim.job.fileName)
    }
    let stream = try stream(directory)
    let job = JobName(unchecked: bare(job.fileName))
    var names: [FileName] = []
    while let name = try stream.next() {
      let own = bare(name)
      let isLike = own == job.fileName || job.isNumbered(as: own) || JobName(own)?.isNumbered(as: job.fileName) ?? false
      if isLike, try self.status(directory, name)?.isSameFile(as: status) ?? false { names.append(name) }
    }
    return names
  }

  /// The file system that the spool is on; nil if it cannot be made durable as a whole.
  /// - Throws: ``SpoolError`` where its status cannot be read.
  package func fileSystem() throws(SpoolError) -> FileSystem? { FileSystem(directory, try directory.status(), kind) }

  /// The name of this worker with another tag, which cannot be guessed.
  var scratchOwner: String { owner.tagged(UInt32(truncatingIfNeeded: Host.current.random())).text }

  /// A new name in `tmp/` that cannot be guessed. Other users may write there (spool.5, SEVERAL USERS), and see this
  /// worker's tag in the names of its claims, so the name has another tag.
  func temporary(_ name: FileName) -> Path { Path(.tmp, FileName(name.bytes + [0x3A] + Array(scratchOwner.utf8))) }

  /// The content of a small regular file, at most `limit` bytes; nil when there is none.
  package func contents(_ path: Path, limit: Int) throws(SpoolError) -> [UInt8]? { try read(path, limit: limit)?.bytes }

  /// The text of a job or of a record, as far as it is believed; nil when there is no such regular file.
  package func jobContents(_ path: Path) throws(SpoolError) -> [UInt8]? {
    try read(path) { textLimit(of: $0) }.map { believed($0.bytes, of: $0.status) }
  }

  /// How much of a job's file is read: of a stranger's, only what the job asks for, and a byte that tells of more.
  func textLimit(of file: FileStatus) -> Int {
    believesJournal(of: file) ? Self.maximumJobFile : JobText.maximumRequest + 1
  }

  /// Whether the journal in a job's file is a worker's. In another user's file, whoever dropped it could have written
  /// any line, so all who read it, and a claim's copy of it, take it without those.
  func believesJournal(of file: FileStatus) -> Bool { file.owner == journalUser }

  /// Whether only workers change a job's file, as far as is known: it is their user's, and has no other name. Of any
  /// other file, a claim neither sets nor believes the time, and a copy takes its place.
  func isWorkersOwn(_ file: FileStatus) -> Bool { believesJournal(of: file) && file.links == 1 }

  func believed(_ text: [UInt8], of file: FileStatus) -> [UInt8] {
    believesJournal(of: file) ? text : text.withUnsafeBytes { JournalScan.request(in: $0) }
  }

  /// To open what may be a job's file, and may be a pipe, a terminal or a link.
  static let jobFlags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY

  /// Opens a text that a worker, perhaps on another host, may be writing to or about to rename. Linux asks for no
  /// delegation of what is opened with O_DIRECT (nfs4proc.c, `nfs4_map_atomic_open_share`).
  func openText(_ path: Path, in directory: Int32? = nil) throws(SpoolError) -> OwnedFile {
    let file = try system.open(
      directory ?? root, path, O_RDONLY | Self.jobFlags | (kind.hasDelegations ? pastCache : 0))
    if kind.isMooseFS { try file.readPastCache() }
    return file
  }

  /// The bytes of a job's file; nil where there is none, or this user may not read it.
  package func readableContents(_ path: Path) throws(SpoolError) -> [UInt8]? {
    try orNil(jobContents(path), where: \.isUnreadable)
  }

  func read(_ path: Path, in directory: Int32? = nil, limit: Int) throws(SpoolError)
    -> (bytes: [UInt8], status: FileStatus)?
  {
    try read(path, in: directory) { _ in limit }
  }

  private func read(_ path: Path, in directory: Int32? = nil, limit: (FileStatus) -> Int) throws(SpoolError)
    -> (bytes: [UInt8], status: FileStatus)?
  {
    do throws(SpoolError) {
      let file = try openText(path, in: directory)
      let status = try file.status()
      return status.isRegular ? (try file.read(first: min(Int(clamping: status.size), limit(status))), status) : nil
    } catch
      where error.errno == .noSuchFileOrDirectory || error.call == .open && error.isNoRegularFile
      || error.call != .open && error.isGone
    {
      return nil
    }
  }

  /// The keys that every job inherits.
  /// - Throws: ``Defect`` naming the line; ``SpoolError``.
  package func defaults() throws -> JobRequest {
    let path = Path("defaults")
    guard let settings else { return JobRequest() }
    let bytes = try read(path, in: settings.directory.number, limit: JobText.maximumRequest + 1)?.bytes
    guard let bytes else {
      let isThere = try system.statusIfPresent(settings.directory.number, path) != nil
      guard isThere else { return JobRequest() }
      throw Defect(line: nil, reason: "is not a regular file")
    }
    if bytes.count > JobText.maximumRequest { throw Defect(line: nil, reason: "has more than 64 KiB") }
    let text = bytes.withUnsafeBytes { JobText($0, defaults: true) }
    if let defect = text.defect { throw defect }
    if text.hasTornTail { throw Defect(line: nil, reason: "its last line does not end in a newline") }
    return text.request
  }

  /// Whether the spool's file system is gone, and not only one file of it. It may be mounted again.
  package func isLost(_ error: SpoolError) -> Bool {
    guard error.isOfLostMount(on: kind) else { return false }
    do throws(SpoolError) {
      // What a file system answers from its cache proves nothing.
      _ = try stamp(of: .new)
      _ = try stream(.new).next()
      return false
    } catch {
      return error.isOfLostMount(on: kind)
    }
  }

  /// Whether `error`, which work on one file in `directory` met, leaves the other files alone: the directories that all
  /// jobs pass through can be written to.
  package func concernsOneFile(_ error: SpoolError, in directory: Directory) -> Bool {
    guard error.mayConcernOneFile || kind.isLocal && error.isOfDamagedFile else { return false }
    for directory in Set([directory, .cur, .tmp]) {
      do throws(SpoolError) { try system.mayChange(root, Path(directory)) } catch {
        guard directory.isOptional, error.errno == .noSuchFileOrDirectory else { return false }
      }
    }
    // A file system whose disk is gone still answers what it has in memory.
    do throws(SpoolError) { if error.isOfDamagedFile { try flush(.tmp).run() } } catch { return false }
    return true
  }
}

extension Spool {
  /// Finds out whether these directories can be opened for the `settings` of a spool that is still to be made.
  /// - Throws: ``SpoolError``, EPERM where one is another user's.
  package static func checkSettings(_ places: [String]) throws(SpoolError) {
    _ = try Settings.first(of: places, System())
  }
}

extension Spool.Settings {
  /// The first of these directories that exists; nil where none does.
  /// - Throws: ``SpoolError``, EPERM where it is another user's, who could have this one run any program.
  fileprivate static func first(of places: [String], _ system: System) throws(SpoolError) -> Self? {
    for place in places {
      do throws(SpoolError) {
        let reached = try system.reach(Path(place))
        let directory = reached.file.shared()
        guard [geteuid(), 0].contains(try directory.status().owner) else {
          throw SpoolError(call: .open, path: escaped(place), errno: .notPermitted, reason: "it is another user's")
        }
        return Self(location: place, directory: directory)
      } catch  where error.errno == .noSuchFileOrDirectory || error.errno == .notDirectory {
      }
    }
    return nil
  }

  func isInPlace(_ system: System) throws(SpoolError) -> Bool {
    try system.status(AT_FDCWD, Path("\(location)/.")).isSameFile(as: directory.status())
  }
}

/// Directories that a spool of an older version lacks.
extension Spool {
  /// Makes a directory that spools of version 0.1 lack, and its name durable: what is put there is promised to last.
  package func provide(_ directory: Path) throws(SpoolError) {
    do throws(SpoolError) { try system.makeDirectory(root, directory) } catch  where error.errno == .fileExists {
      // Whoever made it may have died before it was durable.
      if hasFlushedNames.load(ordering: .relaxed) { return }
    }
    try self.directory.fsync()
    hasFlushedNames.store(true, ordering: .relaxed)
  }
}

extension Spool {
  /// Bytes that this user can still write beside the data; nil if the file system does not tell.
  package func freeSpace() -> UInt64? {
    // If the file system cannot be queried, the free space is unknown, which stops no job.
    do throws(SpoolError) { return try directory.freeSpace() } catch { return nil }
  }

  /// The lease of a spool that says nothing else, in seconds: two heartbeats.
  package static let standardLease: Int64 = 60
  /// The leases that workers may agree on, in seconds.
  package static let leaseRange: ClosedRange<Int64> = 5...86_400
  static let leasePath = Path("lease")

  /// - Returns: nil if there is none.
  /// - Throws: ``Defect`` for a file that says none; ``SpoolError``.
  func readLease() throws -> Int64? {
    guard let bytes = try contents(Self.leasePath, limit: 64) else { return nil }
    let text = String(decoding: bytes, as: UTF8.self)
    guard text.ends(with: "\n"), let seconds = duration(text.dropLast()).map({ Int64($0) }),
      Self.leaseRange.contains(seconds)
    else {
      throw Defect(
        line: nil,
        reason: "its file lease contains no time from \(Self.leaseRange.lowerBound) s to a day: remove it, or write a"
          + " number of seconds and a newline")
    }
    return seconds
  }
}

/// For how long claims have not changed, as this worker has seen it: where each host sets the times of files by its own
/// clock, nothing else shows for how long an owner has been silent. Pure.
///
/// Times are in seconds for which the machine was awake.
struct ClaimSights {
  private var seen: [FileName: (stamp: FileStatus.Stamp, since: Int64)] = [:]
  /// Maximum number of claims that are remembered; after that all begin anew.
  private static let most = 100_000

  /// Each heartbeat and each line of the journal changes the stamp.
  /// - Returns: seconds since the stamp was first seen.
  mutating func silence(of claim: FileName, _ stamp: FileStatus.Stamp, at now: Int64) -> Int64 {
    if let last = seen[claim], last.stamp == stamp { return now - last.since }
    if seen.count >= Self.most { seen = [:] }
    seen[claim] = (stamp, now)
    return 0
  }
}
