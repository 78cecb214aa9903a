internal import Glibc
internal import Spool
internal import SpoolStatus
internal import SystemPackage

enum SpoolUse {
  /// It creates no file, so root may stay root.
  case reading
  /// What users may do whom the spool's owner lets drop jobs.
  case dropping
  /// It runs or moves jobs: only the spool's owner does.
  case changing
  /// It cancels jobs: of a person's gets, none in the spools of other directories, for what is gone is gone.
  case cancelling

  var changesJobs: Bool { self == .changing || self == .cancelling }
}

/// The spool that a person has without having named one: that of `get` in version 0.2, and where a directory can have
/// none.
enum PersonalSpool {
  /// By the XDG Base Directory Specification, section 3: `$XDG_STATE_HOME/spoolrun`, where a relative path does not
  /// count, or else `~/.local/state/spoolrun`; nil without a home directory.
  static var location: String? { place("XDG_STATE_HOME", ".local/state") }

  /// Where the person's own `defaults` and `hooks` are: in the directory for configuration, or else in this spool.
  static var settings: [String] { [place("XDG_CONFIG_HOME", ".config"), location].compactMap(\.self) }

  private static func place(_ variable: String, _ usual: String) -> String? {
    func value(_ name: String) -> String? {
      getenv(name).map { String(cString: $0) }.flatMap { $0.begins(with: "/") ? $0 : nil }
    }
    return (value(variable) ?? value("HOME").map { "\($0)/\(usual)" }).map { "\($0)/spoolrun" }
  }

  /// Where it is. Before anything is made, root becomes the user that it belongs to, or would: the owner of the nearest
  /// directory above it.
  static func become(ownerOf named: String?) throws -> String {
    if let named { try Suggestion.refuse(urlAsSpool: named) }
    if named == nil {
      for name in ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"] { UnreadableText.refuse(variable: name) }
    }
    guard let location = named ?? location else {
      throw ExitStatus.cannotCreate.after("neither XDG_STATE_HOME nor HOME is set: name a spool with --spool")
    }
    try SpoolOwner.become(of: existingPart(of: location).there)
    return location
  }
}

/// Which spools of a person's gets a command is about. Where no lock tells that a get has ended, its empty spool stays.
enum GetContent {
  /// Those with jobs that are not done.
  case undone
  /// Those with any job.
  case jobs
  case anything

  /// A spool counts if one of these has a job; nil if any spool counts.
  var directories: [Directory]? {
    switch self {
    case .undone: GetDirectory.undone
    case .jobs: GetDirectory.undone + [.done]
    case .anything: nil
    }
  }
}

/// The spools of a person's gets, for a command that names neither a spool nor a URL.
enum OwnSpools {
  /// nil if there never was a get.
  private static var records: GetRecords? {
    PersonalSpool.location.flatMap { isDirectory("\($0)/gets") ? GetRecords($0) : nil }
  }

  /// The one beside the files of a directory that may be another user's.
  private static func look(in parent: String) throws(SpoolError) -> GetDirectory.Found {
    do throws(SpoolError) {
      if let records { return try GetDirectory.look(in: parent, records, settings: PersonalSpool.settings) }
    } catch  where error.errno == .permissionDenied {}
    return .nothing
  }

  /// The person's own; nil if there is none, or it is another user's.
  private static func personal() throws(SpoolError) -> Spool? {
    guard let state = PersonalSpool.location, isDirectory("\(state)/\(Directory.files.rawValue)") else { return nil }
    let (owner, boot) = WorkerID.current()
    let spool = try Spool(state, owner: owner, boot: boot, settings: PersonalSpool.settings)
    return try spool.stranger() == nil ? spool : nil
  }

  /// The directory whose files the spool at `location` is beside, by its name; an absolute path.
  private static func parent(of location: String) -> String? {
    let suffix = "/\(GetDirectory.name)"
    guard location.begins(with: "/"), location.ends(with: suffix) else { return nil }
    return location.utf8.count > suffix.utf8.count ? String(location.dropLast(suffix.count)) : "/"
  }

  // MARK: what is left

  /// A job that a command has left.
  struct Left {
    let job: JobName
    /// The path of its file below the directory.
    let name: String
    /// What was asked for, without the place.
    let asked: JobRequest
  }

  /// What earlier commands have left to do in a directory, but for what is paused: in the spool beside the files, or
  /// else in the person's own.
  static func left(in directory: String) throws -> [Left] {
    guard let parent = try? realPath(directory) else { return [] }
    return try ExitStatus.reporting(escaped(directory)) {
      let beside = try look(in: parent)
      var found: [Left] = []
      if case .own(let spool) = beside { found = try spool.unlessGone(left(of: parent, in: spool)) ?? [] }
      if found.isEmpty, let personal = try personal() { found = try left(of: parent, in: personal) }
      guard found.isEmpty, case .stranger(let reason) = beside else { return found }
      throw ExitStatus.refusal("nothing here to go on with: \(reason)", by: "get")
    }
  }

  /// The same for one spool.
  static func left(of parent: String, in spool: Spool, andPaused: Bool = false) throws(SpoolError) -> [Left] {
    var found: [FileName: Left] = [:]
    for directory in [Directory.new, .urgent, .cur, .partial, .cur, .failed] + (andPaused ? [.hold] : []) {
      try JobSearch(spool).eachJob(in: directory) { file in
        let job = directory == .cur ? ClaimName(file.name)?.job : JobName(file.name)
        var asked = JobText(file.bytes).request
        guard let job, let name = asked.output?.text, asked.root?.text == NamedRoots.name(for: parent) else { return }
        (asked.output, asked.root) = (nil, nil)
        found[job.fileName] = Left(job: job, name: name, asked: asked)
      }
    }
    return found.values.sorted { $0.name.exact < $1.name.exact }
  }

  /// What is left of the receipts of a spool that its last command has taken away.
  static func receipts(of spool: Spool) throws(SpoolError) -> GetRecords.Receipts {
    guard spool.isBesideFiles, let parent = parent(of: spool.location), let records else { return [:] }
    return try records.receipts(in: parent)
  }

  /// What gets have fetched into a directory, by its real path.
  static func fetched(into directory: String) throws -> [GetRecords.Fetched] {
    try ExitStatus.reporting("what was fetched into \(escaped(directory))") {
      guard let records else { return [] }
      var own: [GetRecords.Fetched] = []
      if case .own(let spool) = try look(in: directory) {
        func note(_ file: JobFile) {
          guard var one = GetRecords.Fetched(file.name, JobText(file.bytes)) else { return }
          one.isOfSpool = true
          own.append(one)
        }
        try spool.unlessGone(JobSearch(spool).eachJob(in: .done, note))
      }
      // Only now: before the spool goes, its receipts are noted.
      var newest: [ExactText: GetRecords.Fetched] = [:]
      for one in try records.fetched(in: directory) + own { newest[one.done.receipt.output.exact] = one }
      return newest.values.sorted { $0.done.receipt.output.exact < $1.done.receipt.output.exact }
    }
  }

  /// Forgets what gets have fetched into the current directory and is not there any more.
  /// - Returns: nil as for ``GetRecords/forgetMissing(in:isDry:)``.
  static func forgetMissing(isDry: Bool) throws -> [String]? {
    try ExitStatus.reporting("what was fetched here") {
      guard let here = try? realPath("."), let records else { return [] }
      return try records.forgetMissing(in: here, isDry: isDry)
    }
  }

  /// Removes those in which nothing is left to do, as their last command would.
  static func removeDone(_ spools: [Spool]) throws(SpoolError) {
    guard let records else { return }
    for spool in spools where spool.isBesideFiles {
      guard let parent = parent(of: spool.location),
        case .opened(let directory) = try GetDirectory.open(in: parent, records, makes: false),
        directory.isDirectory(of: spool)
      else { continue }
      _ = try directory.removeIfDone(spool)
    }
  }

  // MARK: opening

  /// The one at `location`; nil if that is none of the person's.
  static func open(_ location: String, for use: SpoolUse) throws -> Spool? {
    guard PersonalSpool.location != nil, let parent = (try? realPath(location)).flatMap(Self.parent) else { return nil }
    if use != .reading { _ = try PersonalSpool.become(ownerOf: nil) }
    let found = try ExitStatus.reporting(escaped(location)) { try look(in: parent) }
    return if case .own(let spool) = found { spool } else { nil }
  }

  /// The one of the current directory first.
  /// - Parameter warns: whether it is said what is left out.
  static func open(for use: SpoolUse, having content: GetContent = .undone, warns: Bool = true) throws -> [Spool] {
    guard PersonalSpool.location != nil else { return [] }
    if use != .reading { _ = try PersonalSpool.become(ownerOf: nil) }
    let directories = content.directories
    return try ExitStatus.reporting("the spools of your gets") {
      var found = try records.map { try all($0, having: directories, warns: warns) } ?? []
      let here = (try? realPath("."))?.exact
      func isElsewhere(_ spool: Spool) -> Bool {
        use == .cancelling && (here == nil || parent(of: spool.location)?.exact != here)
      }
      let elsewhere = found.filter(isElsewhere)
      found.removeAll(where: isElsewhere)
      if let personal = try personal(),
        try directories.map({ (all) throws(SpoolError) in try JobSearch(personal).isAnyJob(in: all) }) ?? true
      {
        found.append(personal)
      }
      if found.isEmpty, let other = elsewhere.first {
        throw ExitStatus.noSpool.after(
          "no jobs of a `spoolrun get` are in this directory; those of another one: `spoolrun cancel --spool "
            + "\(ShellWords.quoted(other.location)) …`")
      }
      return found
    }
  }

  private static func all(
    _ records: GetRecords, having directories: [Directory]?, warns: Bool
  ) throws(SpoolError) -> [Spool] {
    func leaveOut(_ parent: String, _ reason: String) {
      if warns { Terminal.error("\(escaped(GetDirectory.location(in: parent))) is left out: \(reason)", .warning) }
    }
    let here = (try? realPath(".")).map { [$0] } ?? []
    var found: [Spool] = []
    for parent in try here + records.directories().filter({ $0.exact != here.first?.exact }) {
      do throws(SpoolError) {
        switch try GetDirectory.look(in: parent, records, settings: PersonalSpool.settings) {
        case .own(let spool):
          if let directories, try spool.unlessGone(JobSearch(spool).isAnyJob(in: directories)) != true { continue }
          found.append(spool)
        case .stranger(let reason): leaveOut(parent, reason)
        case .nothing:
          guard let note = try records.note(ofLost: parent) else { continue }
          leaveOut(
            parent,
            "its directory is gone: if you have moved it, move it back, and `spoolrun get` there goes on; if you have "
              + "removed it, `rm \(ShellWords.quoted(note))` ends this message")
        }
      } catch  where error.errno == .permissionDenied && parent.exact == here.first?.exact {
        // Another user's.
      } catch {
        leaveOut(parent, "\(error)")
      }
    }
    return found
  }
}

/// What gets have fetched, by paths. Reads what is noted of a directory once.
struct FetchedPaths {
  private var known: [ExactText: [GetRecords.Fetched]] = [:]

  /// The file of a path, or all files below a directory; none for an empty path, as of a variable that is not set. By a
  /// mere name, one of a spool here is not meant: that has a job of this name.
  mutating func files(at path: String) throws -> [GetRecords.Fetched] {
    if path.isEmpty { return [] }
    let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
    let place: String
    if isDirectory(path), let directory = try? realPath(path) {
      place = directory
    } else if let slash, let parent = try? realPath(String(path[...slash])) {
      place = (parent == "/" ? "" : parent) + path[slash...]
    } else {
      // Its directory may be gone.
      let here = (try? realPath(".")) ?? "/"
      place = path.begins(with: "/") ? path : here == "/" ? "/\(path)" : "\(here)/\(path)"
    }
    // The get may have been of a directory above.
    var directory = place
    while true {
      let rest = Array(place.utf8.dropFirst(directory == "/" ? 1 : directory.utf8.count + 1))
      let found = try all(in: directory).compactMap { (file) -> GetRecords.Fetched? in
        let output = Array(file.done.receipt.output.utf8)
        var file = file
        file.isNamed = output == rest
        let isMeant = file.isNamed || rest.isEmpty || output.starts(with: rest + [UInt8(ascii: "/")])
        return isMeant && (!file.isOfSpool || slash != nil) ? file : nil
      }
      if !found.isEmpty || directory == "/" { return found }
      let end = directory.utf8.lastIndex(of: UInt8(ascii: "/")) ?? directory.startIndex
      directory = end == directory.startIndex ? "/" : String(directory[..<end])
    }
  }

  private mutating func all(in directory: String) throws -> [GetRecords.Fetched] {
    if let found = known[directory.exact] { return found }
    let found = try OwnSpools.fetched(into: directory)
    known[directory.exact] = found
    return found
  }
}

/// What a person means by the name of a job, its beginning, or a pattern: jobs of one spool.
struct MeantJobs {
  /// The number of the spool among those that were asked.
  let index: Int
  let spool: Spool
  /// Where the person says that they are.
  let directory: Directory?
  /// As the person calls them.
  let name: FileName
  /// The text itself if there is no such job.
  let names: [FileName]
  /// Why it is not certain what is meant; nil if it is.
  private(set) var doubt: String?

  /// Of several spools, in the one that has such a job; else in the first.
  /// - Parameter directories: where jobs are looked for, if none has the whole name.
  /// - Parameter isOne: whether only one job may be meant.
  static func by(
    _ text: [UInt8], in spools: [Spool], _ directories: [Directory], isOne: Bool = false
  ) throws(SpoolError) -> MeantJobs {
    var all: [MeantJobs] = []
    for (index, spool) in spools.enumerated() { all.append(try MeantJobs(text, index, spool, directories, isOne)) }
    guard all.count > 1 else { return all[0] }
    var having: [MeantJobs] = []
    for jobs in all where try jobs.isAnyThere() { having.append(jobs) }
    var jobs = having.first ?? all[0]
    if having.count > 1 {
      let places = having.map { escaped($0.spool.location) }.joined(separator: ", ")
      jobs.doubt = "\(escaped(text)): several of your gets have such a job: \(places); name one with --spool"
    }
    return jobs
  }

  /// The same for each argument of a command that does nothing where one is not certain.
  static func by(
    _ arguments: [String], in spools: [Spool], _ directories: [Directory], isOne: Bool = false
  ) throws -> [MeantJobs] {
    let all = try ExitStatus.reporting("the jobs") {
      try RawArguments.bytes(of: arguments).map { try by($0, in: spools, directories, isOne: isOne) }
    }
    if let doubt = all.lazy.compactMap(\.doubt).first { throw ExitStatus.givenUp.after(doubt) }
    return all
  }

  private init(
    _ text: [UInt8], _ index: Int, _ spool: Spool, _ directories: [Directory], _ isOne: Bool
  ) throws(SpoolError) {
    (self.index, self.spool) = (index, spool)
    (directory, name) = try JobSearch(spool).splitClaim(text)
    let places = directory.map { [$0] } ?? directories
    let meant = try spool.unlessGone(JobSearch(spool).meant(by: name, in: places)) ?? (names: [name], isUnclear: false)
    names = meant.names
    if !meant.isUnclear, !isOne || names.count == 1 { return }
    let what = meant.isUnclear ? "begin so" : "are meant"
    let few = names.prefix(5).map(\.display).joined(separator: ", ") + (names.count > 5 ? ", \u{2026}" : "")
    let next = isOne ? "name one" : "\(escaped(text))* means them all"
    doubt = "\(escaped(text)): several jobs \(what): \(few); \(next)"
  }

  func isAnyThere() throws(SpoolError) -> Bool {
    guard names.count == 1, names[0].isEntry else { return names.count > 1 }
    if try spool.unlessGone(JobSearch(spool).place(of: names[0])) != nil { return true }
    return try Archive(spool).contains(names[0])
  }
}
