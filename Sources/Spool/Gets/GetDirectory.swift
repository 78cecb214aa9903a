internal import Glibc
internal import SystemPackage

/// The directory of the spool that `spoolrun get` makes where its files go. Commands in one directory share it, and the
/// last one removes it when nothing is left in it but receipts.
///
/// Others may own the directory around it, and put anything in its place at any moment. So it is worked with by its
/// descriptor, and compared with what this process has made or knows.
package final class GetDirectory {
  package enum Opening {
    case opened(GetDirectory)
    /// Why there can be none here.
    case unusable(String)
  }

  package static let name = ".spoolrun"
  private static let path = Path(name)
  /// A link whose text is the token of ``GetRecords/Entry``.
  private static let mark = Path(".id")
  /// A link to the directory that it is in; see ``tryRoot(_:_:)``.
  private static let trial = Path(".root")
  /// What may be in it besides the directories of any spool.
  private static let others = ["servers", "roots", "lease", "protocols", ".gitignore", ".id", ".root"]
  /// Where jobs are that are not done.
  package static let undone: [Directory] = [.new, .urgent, .cur, .partial, .hold, .failed, .standing]
  private static let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW
  /// The errors of opening what is somebody else's.
  private static let strange: Set<Errno> = [.notDirectory, .tooManySymbolicLinkLevels, .permissionDenied]

  package static func location(in directory: String) -> String {
    directory == "/" ? "/\(name)" : "\(directory)/\(name)"
  }

  /// Whether a path leads into one, or would.
  package static func isInside(_ path: String) -> Bool {
    path.utf8.split(separator: 0x2F).contains { $0.elementsEqual(name.utf8) }
  }

  /// The directory that it is in: an absolute path.
  package let parent: String
  private let above: SharedFile
  private var file: OwnedFile
  private let identity: FileStatus
  private let entry: GetRecords.Entry
  private let records: GetRecords
  /// Otherwise nobody can know who else uses it, and it stays.
  private let isLocked: Bool
  private var system: System { records.system }

  private init(
    _ parent: String, _ above: SharedFile, _ file: consuming OwnedFile, _ identity: FileStatus,
    _ entry: GetRecords.Entry, _ records: GetRecords, isLocked: Bool
  ) {
    (self.parent, self.above, self.identity, self.entry) = (parent, above, identity, entry)
    (self.records, self.isLocked) = (records, isLocked)
    self.file = file
  }

  // MARK: opening

  /// - Parameter makes: whether it is made when it is missing.
  /// - Throws: ``SpoolError`` where nothing can be made in `parent`.
  package static func open(in parent: String, _ records: GetRecords, makes: Bool = true) throws(SpoolError) -> Opening {
    // No link that another user could have put on the way leads elsewhere.
    let reached = try records.system.reach(Path(parent))
    let above = reached.file.shared()
    for _ in 0..<1000 {
      try sweep(parent, above, records)
      if let opening = try tryOpening(parent, above, records, makes: makes) { return opening }
      // Another command removes it at this moment.
      Host.current.wait(milliseconds: 10)
    }
    return .unusable("\(name) keeps being removed")
  }

  /// - Returns: nil to try again.
  private static func tryOpening(
    _ parent: String, _ above: SharedFile, _ records: GetRecords, makes: Bool
  ) throws(SpoolError) -> Opening? {
    let system = records.system
    let isNew = makes ? try system.makeDirectoryIfMissing(above.number, path) : false
    var file: OwnedFile
    do throws(SpoolError) {
      file = try system.open(above.number, path, flags)
    } catch  where error.errno == .noSuchFileOrDirectory {
      return makes ? nil : .unusable("there is none")
    } catch  where strange.contains(error.errno) {
      return .unusable("what is called \(name) there is not one of yours; if you do not need it, rename it")
    }
    let identity = try file.status()
    func refuse(_ reason: String) throws(SpoolError) -> Opening {
      if isNew { try orNil(system.removeDirectory(above.number, path), on: .noSuchFileOrDirectory, .directoryNotEmpty) }
      return .unusable(reason)
    }
    // Before the lock, which its owner could keep for ever.
    guard identity.owner == geteuid() else {
      return try refuse(isNew ? "its file system gives files to another user" : "\(name) there belongs to another user")
    }
    var isLocked = false
    do throws(SpoolError) {
      guard try file.lockShared() else { return nil }
      // Elsewhere the commands of other hosts may not see the lock.
      isLocked = FileSystemKind(type: try file.fileSystemType()).isLocal
    } catch  where error.call == .lock {
      // There are no locks here.
    }
    guard try system.statusIfPresent(above.number, path)?.isSameFile(as: identity) == true else { return nil }
    if identity.permissions & 0o077 != 0 { try file.setPermissions(0o700) }
    guard try file.status().permissions & 0o077 == 0 else {
      return try refuse("its file system cannot keep others out of \(name)")
    }
    var entry = try known(file, identity, parent, records)
    do throws(SpoolError) {
      if makes, entry != nil {
        // A full disk says nothing of links.
        do throws(SpoolError) { try tryRoot(file, parent) } catch  where error.isDiskFull {}
      }
      if makes, entry == nil { entry = try adopted(file, identity, parent, above, records) }
      if entry != nil { try fill(file) }
    } catch {
      // The first error is the one to tell.
      if isNew, isLocked { try? discard(&file, identity, entry, above, records, parent) }
      guard error.call == .link, !error.isDiskFull, error.errno != .readOnlyFileSystem else { throw error }
      return try refuse("its file system has no symbolic links to absolute paths")
    }
    guard let entry else { return .unusable(try origin(of: file, identity, records)) }
    return .opened(GetDirectory(parent, above, file, identity, entry, records, isLocked: isLocked))
  }

  package enum Found {
    case own(Spool)
    /// Why it is none of this person's there, and what to do.
    case stranger(String)
    /// Nothing, or what another user has made.
    case nothing
  }

  /// - Parameter settings: as for ``Spool/init(_:owner:boot:system:kind:settings:isBesideFiles:)``.
  package static func look(in parent: String, _ records: GetRecords, settings: [String]) throws(SpoolError) -> Found {
    let place = location(in: parent)
    do throws(SpoolError) {
      let file = try records.system.open(AT_FDCWD, Path(place), flags)
      let identity = try file.status()
      guard identity.owner == geteuid() else { return .nothing }
      guard try known(file, identity, parent, records) != nil else {
        return .stranger(try origin(of: file, identity, records))
      }
      let (owner, boot) = WorkerID.current()
      let spool = try Spool(
        place, owner: owner, boot: boot, system: records.system, settings: settings, isBesideFiles: true)
      return spool.identity.isSameFile(as: identity) ? .own(spool) : .nothing
    } catch  where [.noSuchFileOrDirectory, .notDirectory, .tooManySymbolicLinkLevels].contains(error.errno) {
      return .nothing
    }
  }

  /// Where a spool comes from that is not known here, and what to do.
  private static func origin(
    of file: borrowing OwnedFile, _ identity: FileStatus, _ records: GetRecords
  ) throws(SpoolError) -> String {
    let token = try orNil(records.system.readLink(file.number, mark), on: .noSuchFileOrDirectory, .invalidArgument)
    let text = token.map { String(decoding: $0, as: UTF8.self) } ?? ""
    guard let directory = try records.directory(of: identity.inode, text) else {
      return "the \(name) there comes from elsewhere, such as an archive or another computer; if you do not need it, "
        + "remove it"
    }
    return "the \(name) there was made in \(escaped(directory)); move the directory back to go on with what it has, or "
      + "remove \(name) to begin anew"
  }

  private static func known(
    _ file: borrowing OwnedFile, _ identity: FileStatus, _ parent: String, _ records: GetRecords
  ) throws(SpoolError) -> GetRecords.Entry? {
    let entries = try records.entries(of: parent).filter { $0.inode == identity.inode }
    if entries.isEmpty { return nil }
    let token = try orNil(records.system.readLink(file.number, mark), on: .noSuchFileOrDirectory, .invalidArgument)
    return entries.first { Array($0.token.utf8) == token }
  }

  /// Makes an empty one the person's own, whoever left it: a command that died, or an archive.
  private static func adopted(
    _ file: borrowing OwnedFile, _ identity: FileStatus, _ parent: String, _ above: SharedFile, _ records: GetRecords
  ) throws(SpoolError) -> GetRecords.Entry? {
    let system = records.system
    let names = try system.names(in: file.number)
    // Another command may have filled it since.
    guard names.allSatisfy({ [FileName(".id"), FileName(".root")].contains($0) }) else {
      return try known(file, identity, parent, records)
    }
    try tryRoot(file, parent)
    let random = (0..<2).map { _ in hexadecimal(Host.current.random(), digits: 16) }.joined()
    // Another command may do the same.
    try orNil(system.symbolicLink(Path(random), file.number, mark), on: .fileExists)
    guard let token = try orNil(system.readLink(file.number, mark), on: .invalidArgument) else { return nil }
    let entry = GetRecords.Entry(
      inode: identity.inode, token: String(decoding: token, as: UTF8.self), mount: GetRecords.mount(of: identity),
      above: try above.status().inode)
    try records.save(entry, of: parent)
    // A command may have died when it had removed the one before. Those of a directory that had the path before are
    // where that is now: it may be moved back.
    for old in try records.entries(of: parent)
    where old.mount == entry.mount && old.above == entry.above && old.inode != entry.inode {
      if try system.statusIfPresent(above.number, formerPath(old)) == nil { try records.forget(old, of: parent) }
    }
    return entry
  }

  /// Tries whether a link to the directory of the files can be read, as the worker has to: sshfs(1) may refuse to read
  /// one to an absolute path (EPERM), or make it relative, and the jobs would wait for it for ever.
  /// - Throws: ``SpoolError`` of the call `link` if it cannot.
  private static func tryRoot(_ file: borrowing OwnedFile, _ parent: String) throws(SpoolError) {
    let (system, directory) = (file.system, file.number)
    func isReadable() throws(SpoolError) -> Bool {
      let refusals: [Errno] = [.notPermitted, .permissionDenied, .invalidArgument, .noSuchFileOrDirectory]
      let target = try orNil(system.readLink(directory, trial), where: { refusals.contains($0.errno) })
      return target?.first == UInt8(ascii: "/")
    }
    if try isReadable() { return }
    try orNil(system.symbolicLink(Path(parent), directory, trial), on: .fileExists)
    // If it is gone, another command has found the same.
    if try isReadable() { return }
    try system.unlinkIfPresent(directory, trial)
    throw SpoolError(call: .link, path: trial.display, errno: .notPermitted)
  }

  private static func fill(_ file: borrowing OwnedFile) throws(SpoolError) {
    let system = file.system
    // The last one that is made.
    guard try system.statusIfPresent(file.number, Path(.files)) == nil else { return }
    let ignored = try system.create(file.number, Path(".gitignore"), O_WRONLY | O_NOFOLLOW)
    try ignored.write(Array("*\n".utf8), at: 0)
    for directory in Directory.allCases { try system.makeDirectoryIfMissing(file.number, Path(directory)) }
    try file.fsync()
  }

  package func isDirectory(of spool: Spool) -> Bool { spool.identity.isSameFile(as: identity) }

  // MARK: removing

  /// Removes it if nothing is left in it but receipts, of which the records keep what they say, and nobody uses it.
  /// - Parameter tidy: what to do before, unless another command uses it; with whether that is certain.
  package func removeIfDone(
    _ spool: Spool, after tidy: (_ isAlone: Bool) throws(SpoolError) -> Void = { _ in }
  ) throws(SpoolError) -> Bool {
    if isLocked, try !Self.lockAlone(&file) { return false }
    try tidy(isLocked)
    // Where no lock tells of other commands, the directory stays.
    if !isLocked { return false }
    guard try isDone(spool), try system.statusIfPresent(above.number, Self.path)?.isSameFile(as: identity) == true
    else { return false }
    // It stays while another command keeps the records for itself.
    guard try orNil(records.note(receipts(of: spool), in: parent), where: \.isBusy) != nil else { return false }
    try system.rename(above.number, Self.path, Self.formerPath(entry))
    // A job may have been dropped at the last moment.
    guard try isDone(spool), try Self.remove(entry, above, records, parent) else {
      try Self.putBack(file, entry, above)
      return false
    }
    return true
  }

  private static func lockAlone(_ file: inout OwnedFile) throws(SpoolError) -> Bool {
    do throws(SpoolError) { return try file.lock() } catch  where error.call == .lock { return false }
  }

  private func isDone(_ spool: Spool) throws(SpoolError) -> Bool {
    let known = Set(Directory.allCases.map { FileName($0.rawValue) } + Self.others.map { FileName($0) })
    guard try system.names(in: file.number).allSatisfy(known.contains), try spool.list(.files).isEmpty else {
      return false
    }
    if try JobSearch(spool).isAnyJob(in: Self.undone) { return false }
    for directory in Self.comeTo {
      let names = try orNil(spool.system.names(in: file.number, Path(directory)), on: .noSuchFileOrDirectory) ?? []
      if !names.isEmpty { return false }
    }
    return true
  }

  /// The directories to which jobs come: once these are gone, none can come.
  private static let comeTo: [Directory] = [.new, .urgent, .hold, .standing, .cur]

  private func receipts(of spool: Spool) throws(SpoolError) -> [GetRecords.Fetched] {
    var found: [GetRecords.Fetched] = []
    func add(_ file: JobFile) { GetRecords.Fetched(file.name, JobText(file.bytes)).map { found.append($0) } }
    try JobSearch(spool).eachArchived { (file) throws(SpoolError) in add(file) }
    try JobSearch(spool).eachJob(in: .done) { (file) throws(SpoolError) in add(file) }
    return found
  }

  /// Its name from the moment when it is removed.
  private static func formerPath(_ entry: GetRecords.Entry) -> Path { Path("\(name).\(entry.inode)") }

  /// Removes what a command left that died while it removed its spool. One with a job, which came at the last moment,
  /// gets its name again, where that is free.
  private static func sweep(_ parent: String, _ above: SharedFile, _ records: GetRecords) throws(SpoolError) {
    let system = records.system
    for entry in try records.entries(of: parent) {
      do throws(SpoolError) {
        var file = try system.open(above.number, formerPath(entry), flags)
        guard try isOwn(file, entry), try lockAlone(&file) else { continue }
        if try !hasJob(file), try remove(entry, above, records, parent) { continue }
        try putBack(file, entry, above)
      } catch  where strange.union([.noSuchFileOrDirectory, .fileExists]).contains(error.errno) {
        // There is none, or something else has one of the names.
      }
    }
  }

  private static func putBack(
    _ file: borrowing OwnedFile, _ entry: GetRecords.Entry, _ above: SharedFile
  ) throws(SpoolError) {
    let system = file.system
    // Some of it may have been removed.
    if try system.statusIfPresent(file.number, mark) == nil {
      try system.symbolicLink(Path(entry.token), file.number, mark)
    }
    for directory in Directory.allCases { try system.makeDirectoryIfMissing(file.number, Path(directory)) }
    try system.renameNoReplace(above.number, formerPath(entry), path)
  }

  private static func isOwn(_ file: borrowing OwnedFile, _ entry: GetRecords.Entry) throws(SpoolError) -> Bool {
    let status = try file.status()
    return status.inode == entry.inode && status.owner == geteuid()
  }

  private static func hasJob(_ file: borrowing OwnedFile) throws(SpoolError) -> Bool {
    for directory in undone {
      let names = try orNil(file.system.names(in: file.number, Path(directory)), on: .noSuchFileOrDirectory) ?? []
      if names.contains(where: { !$0.isIgnored && !$0.isData }) { return true }
    }
    return false
  }

  /// Removes the directory that bears the name of one that is removed, if it is that one.
  /// - Returns: false if a job has come meanwhile, by a command that has no lock, such as `retry`.
  private static func remove(
    _ entry: GetRecords.Entry, _ above: SharedFile, _ records: GetRecords, _ parent: String
  ) throws(SpoolError) -> Bool {
    let system = records.system
    do throws(SpoolError) {
      let file = try system.open(above.number, formerPath(entry), flags)
      guard try isOwn(file, entry) else { return true }
      for directory in comeTo {
        _ = try orNil(system.removeDirectory(file.number, Path(directory)), on: .noSuchFileOrDirectory)
      }
      try system.removeContents(of: file)
      try system.removeDirectory(above.number, formerPath(entry))
    } catch  where error.errno == .directoryNotEmpty {
      return false
    } catch  where error.errno == .noSuchFileOrDirectory {
      // Another command has removed it.
    } catch  where strange.contains(error.errno) && error.path == formerPath(entry).display {
      // Something else has its name, which says nothing of the spool.
      return true
    }
    try records.forget(entry, of: parent)
    return true
  }

  /// Removes a new one that is not complete, unless another command has it.
  private static func discard(
    _ file: inout OwnedFile, _ identity: FileStatus, _ entry: GetRecords.Entry?, _ above: SharedFile,
    _ records: GetRecords, _ parent: String
  ) throws(SpoolError) {
    let system = records.system
    guard try lockAlone(&file), try system.statusIfPresent(above.number, path)?.isSameFile(as: identity) == true
    else { return }
    try system.removeContents(of: file)
    try system.removeDirectory(above.number, path)
    if let entry { try records.forget(entry, of: parent) }
  }
}

extension System {
  /// Removes all that is in the open directory, and follows no link.
  fileprivate func removeContents(of directory: borrowing OwnedFile) throws(SpoolError) {
    for name in try names(in: directory.number) {
      do throws(SpoolError) {
        try unlinkIfPresent(directory.number, Path(name))
      } catch  where error.errno == .isDirectory || error.errno == .notPermitted {
        let below = try open(directory.number, Path(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
        try removeContents(of: below)
        try removeDirectory(directory.number, Path(name))
      }
    }
  }
}
