internal import Glibc
internal import SystemPackage

/// Where a job file is: a directory of the spool and its name there, which in `cur/` ends in the owner.
package struct JobPlace: Hashable, Sendable {
  package let directory: Directory
  /// The file's name there; in `cur` with the owner's.
  package let name: FileName
  /// Distinguishes one job that was seen twice while it moved from two jobs of one name.
  package let inode: UInt64

  /// `DIRECTORY/NAME`, safe for a terminal.
  package var display: String { path.display }

  package var job: FileName { directory == .cur ? ClaimName(name)?.job.fileName ?? name : name }

  var path: Path { Path(directory, name) }

  package var hasEnded: Bool { directory == .done || directory == .failed }
}

package typealias FoundJob = (place: JobPlace, text: JobText)

/// Finding jobs by their names in any state, and by what they ask for.
package struct JobSearch {
  let spool: Spool

  package init(_ spool: Spool) { self.spool = spool }

  /// Splits what a person calls a job: `NAME`, `DIRECTORY/NAME`, or the path of its file, as a shell completes it.
  /// Anything else is returned as a name, which no job has.
  package func split(_ bytes: [UInt8]) throws(SpoolError) -> (directory: Directory?, name: FileName) {
    let whole: (Directory?, FileName) = (nil, FileName(bytes))
    guard let slash = bytes.lastIndex(of: 0x2F) else { return whole }
    let outer = bytes[..<slash].lastIndex(of: 0x2F)
    let middle = bytes[(outer.map { $0 + 1 } ?? 0)..<slash]
    guard let directory = Directory(rawValue: String(decoding: middle, as: UTF8.self)) else { return whole }
    if let outer, try !isRoot(Array(bytes[..<outer])) { return whole }
    return (directory, FileName(Array(bytes[(slash + 1)...])))
  }

  /// The same, and a claim's file name in `cur` for its job. A job's own name may look like a claim's, so this applies
  /// only if such a file exists.
  package func splitClaim(_ bytes: [UInt8]) throws(SpoolError) -> (directory: Directory?, name: FileName) {
    let (directory, name) = try split(bytes)
    if directory == .cur, name.isEntry, let claim = ClaimName(name), try spool.status(.cur, name) != nil {
      return (directory, claim.job.fileName)
    }
    return (directory, name)
  }

  /// The jobs that a person means by a text that need not be a job's whole name: those of the text as a pattern
  /// (fnmatch(3)), or those that begin with it, or the one that is shown so; of no job, the text itself.
  /// - Parameter directories: where jobs are looked for, if none has the whole name.
  /// - Returns: also whether more than one begin with it, so that it is not certain which is meant.
  package func meant(by text: FileName, in directories: [Directory]) throws(SpoolError)
    -> (names: [FileName], isUnclear: Bool)
  {
    guard text.isEntry, try place(of: text) == nil, try !Archive(spool).contains(text) else { return ([text], false) }
    var all: Set<FileName> = []
    for directory in directories {
      for name in try spool.list(directory) {
        let job = directory == .cur ? ClaimName(name)?.job : JobName(name)
        if let job { all.insert(job.fileName) }
      }
    }
    let isPattern = text.bytes.contains { [UInt8(ascii: "*"), UInt8(ascii: "?"), UInt8(ascii: "[")].contains($0) }
    var found = all.filter { name in
      if !isPattern { return name.bytes.starts(with: text.bytes) }
      return Path(text).withCString { pattern in Path(name).withCString { fnmatch(pattern, $0, 0) == 0 } }
    }.sorted()
    // As commands show a name that has control characters or a backslash.
    if text.bytes.contains(UInt8(ascii: "\\")), let shown = all.first(where: { Array($0.display.utf8) == text.bytes }) {
      found = [shown]
    }
    // It may have come meanwhile.
    return found.isEmpty || all.contains(text) ? ([text], false) : (found, !isPattern && found.count > 1)
  }

  /// Whether a path leads to this spool.
  private func isRoot(_ path: [UInt8]) throws(SpoolError) -> Bool {
    // Through a link as well.
    let status = try orNil(
      spool.system.status(AT_FDCWD, Path(path + Array("/.".utf8))), on: .noSuchFileOrDirectory, .notDirectory,
      .permissionDenied)
    return try status?.isSameFile(as: spool.directory.status()) ?? false
  }

  /// The directories that contain jobs, in the order in which a job passes through them: a job that moves during a look
  /// is seen twice rather than not at all.
  static let directories: [Directory] = [.new, .urgent, .cur, .partial, .hold, .failed, .done]

  /// The same, and `cur` again for a job that has left `partial` since: to read the jobs takes long.
  static let readingOrder: [Directory] = [.new, .urgent, .cur, .partial, .cur, .hold, .failed, .done]

  /// Where a job's file has its name now: a name that somebody moves on may escape one look, or be seen twice.
  func place(of name: FileName, _ file: FileStatus) throws(SpoolError) -> JobPlace? {
    try places(of: name, in: Directory.ofJobs + Directory.ofJobs).last { $0.inode == file.inode }
  }

  /// The places of the jobs of this name, by one look: a job that moves meanwhile may be missed or seen twice.
  package func places(of name: FileName, in directories: [Directory]? = nil) throws(SpoolError) -> [JobPlace] {
    var places: [JobPlace] = []
    for directory in directories ?? Self.directories + [.standing] {
      let names = directory == .cur ? try spool.list(.cur).filter { ClaimName($0)?.job.fileName == name } : [name]
      for name in names {
        guard let status = try spool.status(directory, name) else { continue }
        if directory == .done, name == Spool.archiveName, status.isDirectory { continue }
        places.append(JobPlace(directory: directory, name: name, inode: status.inode))
      }
    }
    return places
  }

  /// The same, and those that got a number because the name was taken: the ones that have ended first.
  package func namesakes(of job: JobName) throws(SpoolError) -> [JobPlace] {
    var found: [JobPlace] = []
    for directory in Self.directories.reversed() {
      for name in try spool.list(directory) {
        let own = directory == .cur ? ClaimName(name)?.job.fileName ?? name : name
        guard own == job.fileName || job.isNumbered(as: own) else { continue }
        if let status = try spool.status(directory, name) {
          found.append(JobPlace(directory: directory, name: name, inode: status.inode))
        }
      }
    }
    return found
  }

  /// The places of jobs of this name. If none of them has still to come to its end, that is what two looks say: a job
  /// that moves in either direction is seen by one of the two.
  package func settledPlaces(of job: JobName) throws(SpoolError) -> [JobPlace] {
    let places = try places(of: job.fileName)
    if places.contains(where: { !$0.hasEnded }) { return places }
    return try self.places(of: job.fileName, in: Self.directories.reversed() + [.standing])
  }

  /// Those of `names` of which there is no job, or only a done one. Looks in the order in which a job moves, and in
  /// reverse: a job that moves in either direction is seen by one of the two.
  func absent(of names: Set<FileName>) throws(SpoolError) -> Set<FileName> {
    let directories = Self.directories.filter { $0 != .done }
    var absent = names
    func look(in directories: [Directory]) throws(SpoolError) {
      for directory in directories where !absent.isEmpty {
        if directory == .cur {
          try absent.subtract(claimed(in: .cur))
        } else {
          for name in absent where try spool.status(directory, name) != nil { absent.remove(name) }
        }
      }
    }
    // This look settles nearly all cases: `new/` may be long, and is listed only after it.
    try look(in: directories)
    // Moved out of cur/ with its owner's suffix left on.
    for directory in [Directory.hold, .new, .urgent] where !absent.isEmpty {
      try absent.subtract(claimed(in: directory))
    }
    try look(in: directories)
    try look(in: directories.reversed())
    return absent
  }

  private func claimed(in directory: Directory) throws(SpoolError) -> [FileName] {
    try spool.list(directory).compactMap { ClaimName($0)?.job.fileName }
  }

  /// Whether one of these directories has a job, or what is taken for one. Reads no more names than it needs.
  package func isAnyJob(
    in directories: [Directory], besidesOrders: Bool = false,
    where isMeant: (Directory, FileName) -> Bool = { _, _ in true }
  ) throws(SpoolError) -> Bool {
    for directory in directories {
      let stream = try spool.stream(directory)
      while let name = try stream.next() {
        if name.isIgnored || name.isData || !isMeant(directory, name) || directory == .cur && ClaimName(name) == nil {
          continue
        }
        if directory == .failed, try isRecord(name) { continue }
        let isOrder = besidesOrders ? try isStandingOrder(directory, name) : false
        if !isOrder { return true }
      }
    }
    return false
  }

  /// The text of a job, for readers without a claim: `verify`, `status`.
  /// - Returns: nil where no regular file has the name.
  package func job(_ directory: Directory, _ name: FileName) throws(SpoolError) -> JobText? {
    guard let bytes = try spool.jobContents(Path(directory, name)) else { return nil }
    return bytes.withUnsafeBytes { JobText($0) }
  }

  /// Where the job or standing order of this name is, whatever its state; nil where there is none. Claims count by
  /// their job's name.
  /// - Throws: ``SpoolError``, EACCES for a user who may only drop.
  package func place(of name: JobName) throws(SpoolError) -> JobPlace? { try place(of: name.fileName) }

  /// The same for a name that need not be a job's.
  package func place(of name: FileName) throws(SpoolError) -> JobPlace? {
    // The most likely places first, which need no directory to be read. A job that moves meanwhile is found by one
    // of the two looks behind; one that has moved several times may have ended during the last of them.
    for directories in [
      [.done, .new, .urgent, .partial, .failed, .hold, .standing], Self.directories + [.standing],
      [.standing] + Self.directories.reversed(), [.partial, .failed, .done],
    ] {
      if let place = try places(of: name, in: directories).first { return place }
    }
    return nil
  }

  /// The job of this name, whatever its state; nil where there is none.
  /// - Returns: its text as well, unless it is no regular file, or this user may not read it.
  /// - Throws: ``SpoolError``, EACCES for a user who may only drop.
  package func job(named name: JobName) throws(SpoolError) -> (place: JobPlace, text: JobText?)? {
    var last: JobPlace?
    while let place = try place(of: name) {
      if let found = try read(place.directory, place.name) { return (found.place, found.text) }
      // Otherwise it has moved since it was seen.
      if place == last { return (place, nil) }
      last = place
    }
    return nil
  }

  /// Reads all jobs, as ``firstJob(in:limit:besides:where:)`` does.
  package func forEachJob(in directories: [Directory]? = nil, _ body: (JobText) -> Void) throws(SpoolError) {
    _ = try firstJob(in: directories) { job in
      body(job.text)
      return false
    }
  }

  /// The first job for which `matches` is true. Reads the jobs one after the other, in the order in which a job moves,
  /// so a job that moves on meanwhile is seen twice rather than not at all. Files that this user may not read are left
  /// out.
  /// - Parameter directories: where to look; nil for ``readingOrder``.
  /// - Parameter limit: the maximum number of files to read.
  /// - Parameter own: the name of a file that is not read.
  package func firstJob(
    in directories: [Directory]? = nil, limit: Int = .max, besides own: FileName? = nil,
    where matches: (FoundJob) -> Bool
  ) throws(SpoolError) -> FoundJob? {
    var left = limit
    for directory in directories ?? Self.readingOrder {
      let stream = try spool.stream(directory)
      while left > 0, let name = try stream.next() {
        if name.isIgnored || name.isData || name == own { continue }
        left -= 1
        if let found = try read(directory, name), matches(found) { return found }
      }
    }
    return nil
  }

  /// - Returns: nil where no regular file has the name, or this user may not read it.
  func read(_ directory: Directory, _ name: FileName) throws(SpoolError) -> FoundJob? {
    guard let status = try orNil(spool.status(directory, name), where: \.isUnreadable), status.isRegular,
      let text = try orNil(job(directory, name), where: \.isUnreadable)
    else { return nil }
    return (JobPlace(directory: directory, name: name, inode: status.inode), text)
  }
}

/// Standing orders, and files in `failed/` that are no jobs.
extension JobSearch {
  /// Where standing orders are. The first again, for one that goes back there meanwhile.
  static let ofOrders: [Directory] = [.standing, .cur, .hold, .failed, .standing]

  /// The standing order with this URL, whether it waits, is held or was given up; nil if there is none.
  package func standingOrder(of url: String) throws(SpoolError) -> JobPlace? {
    try firstJob(in: Self.ofOrders) { job in
      job.text.request.isStandingOrder && job.text.request.urls.contains { $0.text.exact == url.exact }
    }?.place
  }

  /// Whether a standing order has the name, and no job.
  package func isOrder(_ name: FileName) throws(SpoolError) -> Bool {
    let places = try places(of: name)
    for place in places where place.directory != .standing {
      if try !isStandingOrder(place.directory, place.name) { return false }
    }
    return !places.isEmpty
  }

  /// Whether the file is a standing order, as far as this user may read it.
  package func isStandingOrder(
    _ directory: Directory, _ name: FileName, where isWanted: (JobRequest) -> Bool = { _ in true }
  ) throws(SpoolError) -> Bool {
    let path = Path(directory, name)
    let bytes = try orNil(spool.contents(path, limit: JobText.maximumRequest), where: \.isUnreadable) ?? []
    let request = bytes.withUnsafeBytes { JobText($0) }.request
    return request.isStandingOrder && isWanted(request)
  }

  /// The entries of `failed/` that are no jobs of their own: data set aside, and records of what is no job.
  package func leftovers(in names: [FileName]) throws(SpoolError) -> Set<FileName> {
    let all = Set(names)
    var found: Set<FileName> = []
    for name in names where try isLeftover(name, among: all) { found.insert(name) }
    return found
  }

  func isLeftover(_ name: FileName, among all: Set<FileName>) throws(SpoolError) -> Bool {
    // Something was dropped as `x.part`: that is no job's name, so it has a record.
    if name.isData, !all.contains(name.record) { return true }
    return try isRecord(name)
  }

  /// What a worker wrote beside an entry of `failed/` that is no job. nil for a job, which has the line about its
  /// failure itself: then a record of its name is of what was here before.
  package func record(of name: FileName) throws(SpoolError) -> [UInt8]? {
    guard name.record != name, try isRecord(name.record),
      try orNil(job(.failed, name), where: \.isUnreadable)?.journal.attempts.lastFailure == nil
    else { return nil }
    return try spool.readableContents(Path(.failed, name.record))
  }

  func isRecord(_ name: FileName) throws(SpoolError) -> Bool {
    guard name.hasRecordSuffix else { return false }
    // Who may not read it goes by the names.
    guard let bytes = try spool.readableContents(Path(.failed, name)) else {
      guard try spool.status(.failed, name)?.isRegular == true else { return false }
      return try spool.status(.failed, name.recordSubject) != nil
    }
    return JobLines.isRecord(bytes)
  }
}
