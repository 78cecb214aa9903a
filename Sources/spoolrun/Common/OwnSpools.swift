internal import CLinux
internal import Glibc
internal import Spool
internal import SystemPackage

enum SpoolUse {
  /// It creates no file, so root may stay root.
  case reading
  /// What users may do whom the spool's owner lets drop jobs.
  case dropping
  /// It runs or moves jobs: only the spool's owner does.
  case changing
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
