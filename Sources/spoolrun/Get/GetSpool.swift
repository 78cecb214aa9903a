internal import CLinux
internal import Glibc
internal import Spool
internal import SystemPackage

/// The spool that one `spoolrun get` works in.
struct GetSpool {
  let spool: Spool
  /// Where it is, if it is beside the files.
  var directory: GetDirectory?
  /// What was fetched earlier into the directory of the files, by the jobs.
  var receipts = GetRecords.Receipts()
  /// The person's own spool, if it has receipts of earlier commands.
  var former: Spool?
  /// What its file system can do; nil if it was not tried.
  var traits: FileSystemTraits?

  init(_ spool: Spool, _ receipts: GetRecords.Receipts = [:]) { (self.spool, self.receipts) = (spool, receipts) }

  /// The one that `--spool` names. It may be misspelled, so only its own last part is made.
  static func named(_ location: String) throws -> GetSpool { GetSpool(try PersonalSpool.open(location)) }

  /// The one beside the files, or where there can be none, the person's own.
  /// - Parameter state: the location of the person's own, and of the records.
  static func own(for items: [GetItem], _ state: String) throws -> GetSpool {
    makeDirectories(above: state, mode: 0o700)
    let parent = items.first?.directory ?? "/"
    let former = isDirectory("\(state)/\(Directory.files.rawValue)") ? try PersonalSpool.openOwn(state) : nil
    let records: GetRecords
    do throws(SpoolError) { records = try GetRecords(state) } catch {
      throw ExitStatus.cannotCreate.after("\(escaped(state)) cannot be created: \(error)")
    }
    let receipts: GetRecords.Receipts
    do throws(SpoolError) {
      if let former {
        for item in items where try isUndone(item, in: former) {
          Terminal.error("goes on with what \(escaped(state)) has of \(escaped(item.shown))", .info)
          return GetSpool(former, try records.receipts(in: parent))
        }
      }
      switch try GetDirectory.open(in: parent, records) {
      case .opened(let directory):
        var found = try beside(directory)
        let obstacles = found.traits?.obstacles ?? []
        if obstacles.isEmpty {
          (found.receipts, found.former) = (try records.receipts(in: parent), former)
          return found
        }
        _ = try directory.removeIfDone(found.spool)
        say(parent, obstacles.joined(separator: "; "), state)
      case .unusable(let reason): say(parent, reason, state)
      }
      receipts = try records.receipts(in: parent)
    } catch {
      throw ExitStatus.cannotCreate.after("\(escaped(parent)) cannot be written to: \(error)")
    }
    return GetSpool(try former ?? PersonalSpool.openOwn(state), receipts)
  }

  private static func say(_ parent: String, _ reason: String, _ state: String) {
    Terminal.error(
      "\(escaped(parent)) cannot have the data until it is complete: \(reason); it goes to \(escaped(state))", .info)
  }

  private static func isUndone(_ item: GetItem, in spool: Spool) throws(SpoolError) -> Bool {
    let place = try JobSearch(spool).place(of: item.job)
    return place.map { $0.directory != .done && $0.directory != .standing } ?? false
  }

  private static func beside(_ directory: GetDirectory) throws(SpoolError) -> GetSpool {
    let location = GetDirectory.location(in: directory.parent)
    let (owner, boot) = WorkerID.current()
    let spool = try Spool(
      location, owner: owner, boot: boot, settings: PersonalSpool.settings, isBesideFiles: true)
    guard directory.isDirectory(of: spool) else {
      throw SpoolError(
        call: .open, path: escaped(location), errno: .ioError, reason: "another directory has taken its place")
    }
    var found = GetSpool(spool)
    found.directory = directory
    do throws(SpoolError) { found.traits = try FileSystemTrial(spool).run() } catch {
      // The first error is the one to tell.
      _ = try? directory.removeIfDone(spool)
      throw error
    }
    return found
  }

  /// Takes away what nobody needs when the command has ended.
  /// - Parameter mistakes: the jobs of URLs that a person has given and that no other attempt would help.
  func finish(_ mistakes: [JobName]) throws(SpoolError) {
    guard let directory else { return }
    for job in mistakes where try spool.status(.partial, job.part) == nil {
      _ = try Steering(spool).perform(.cancel, job.fileName, in: .failed)
    }
    _ = try directory.removeIfDone(spool)
  }
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
    if named == nil {
      for name in ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"] { UnreadableText.refuse(variable: name) }
    }
    guard let location = named ?? location else {
      throw ExitStatus.cannotCreate.after("neither XDG_STATE_HOME nor HOME is set: name a spool with --spool")
    }
    var (parts, status) = (location.utf8.split(separator: 0x2F).map { String(Substring($0)) }, stat())
    var nearest: String { (location.begins(with: "/") ? "/" : "./") + parts.joined(separator: "/") }
    while !parts.isEmpty, stat(nearest, &status) != 0 { parts.removeLast() }
    try SpoolOwner.become(of: nearest)
    return location
  }

  /// The person's own, with the person's settings.
  static func openOwn(_ location: String) throws -> Spool { try open(location, settings: settings) }

  /// Opens the spool at `location`; makes it when it is missing, but no directory above it.
  static func open(_ location: String, settings: [String]? = nil) throws -> Spool {
    if !isDirectory("\(location)/\(Directory.files.rawValue)") {
      do throws(SpoolError) { try Spool.create(location) } catch {
        throw ExitStatus.cannotCreate.after("\(escaped(location)) cannot be created: \(error)")
      }
    }
    return try SpoolOpening.open(location, for: .changing, settings: settings)
  }
}

/// The spools of a person's gets, for a command that names neither a spool nor a URL.
enum OwnSpools {
  /// What earlier commands have left to do in a directory, but for what is paused: the directory's real path, the path
  /// of each file below it, and what was asked for.
  static func left(in directory: String) throws -> [(directory: String, name: String, asked: JobRequest)] {
    guard let state = PersonalSpool.location, isDirectory("\(state)/gets"), let parent = try? realPath(directory) else {
      return []
    }
    var found: [(directory: String, name: String, asked: JobRequest)] = []
    do throws(SpoolError) {
      let spool = try GetDirectory.spool(in: parent, GetRecords(state), settings: PersonalSpool.settings)
      guard let spool else { return [] }
      try JobSearch(spool).forEachJob(in: [.new, .urgent, .cur, .partial, .failed]) { text in
        var asked = text.request
        guard let name = asked.output?.text, asked.root?.text == NamedRoots.name(for: parent) else { return }
        (asked.output, asked.root) = (nil, nil)
        found.append((parent, name, asked))
      }
    } catch  where error.errno == .permissionDenied {
      // Another user's.
      return []
    } catch {
      throw ExitStatus.failure(error, escaped(directory))
    }
    return found.sorted { $0.name.exact < $1.name.exact }
  }

  /// Removes those in which nothing is left to do, as their last command would.
  static func removeDone(_ spools: [Spool]) throws(SpoolError) {
    let suffix = "/\(GetDirectory.name)"
    guard let state = PersonalSpool.location, isDirectory("\(state)/gets") else { return }
    let records = try GetRecords(state)
    for spool in spools where spool.isBesideFiles && spool.location.ends(with: suffix) {
      let parent = String(spool.location.dropLast(suffix.count))
      let opening = try GetDirectory.open(in: parent.isEmpty ? "/" : parent, records, makes: false)
      guard case .opened(let directory) = opening, directory.isDirectory(of: spool) else { continue }
      _ = try directory.removeIfDone(spool)
    }
  }

  /// The one of the current directory first. That of version 0.2 counts if it has jobs that are not done.
  /// - Parameter warns: whether those are named that cannot be opened.
  static func open(for use: SpoolUse, warns: Bool = true) throws -> [Spool] {
    guard let state = PersonalSpool.location else { return [] }
    if use != .reading { _ = try PersonalSpool.become(ownerOf: nil) }
    var found: [Spool] = []
    do throws(SpoolError) {
      if isDirectory("\(state)/gets") {
        let records = try GetRecords(state)
        let here = try? realPath(".")
        for parent in try records.directories() {
          do throws(SpoolError) {
            let spool = try GetDirectory.spool(in: parent, records, settings: PersonalSpool.settings)
            if let spool { parent == here ? found.insert(spool, at: 0) : found.append(spool) }
          } catch {
            let place = escaped(GetDirectory.location(in: parent))
            if warns { Terminal.error("\(place) is left out: \(error)", .warning) }
          }
        }
      }
      let (owner, boot) = WorkerID.current()
      if isDirectory("\(state)/\(Directory.files.rawValue)") {
        let former = try Spool(state, owner: owner, boot: boot, settings: PersonalSpool.settings)
        let directories: [Directory] = [.new, .urgent, .cur, .partial, .hold, .failed, .standing]
        let isOwn = try former.stranger() == nil
        if isOwn, try JobSearch(former).isAnyJob(in: directories) { found.append(former) }
      }
    } catch {
      throw ExitStatus.failure(error, "the spools of your gets")
    }
    return found
  }
}

/// Makes those directories above `path` that are missing. An error shows when what is at `path` is made or opened.
func makeDirectories(above path: String, mode: mode_t) {
  for slash in path.utf8.indices.dropFirst() where path.utf8[slash] == UInt8(ascii: "/") {
    _ = mkdir(String(path[..<slash]), mode)
  }
}
