internal import CLinux
internal import ArgumentParser
internal import Glibc
internal import Spool
internal import SpoolStatus
internal import SystemPackage

enum SpoolOpening {
  /// The spool named by SPOOLRUN_SPOOL, else `spool` in the current directory.
  static var defaultLocation: String { environmentLocation ?? "spool" }

  /// Whether there is a spool for a command that names none.
  static var hasDefault: Bool {
    if environmentLocation != nil || isDirectory("spool") { return isDirectory(defaultLocation) }
    return (try? OwnSpools.open(for: .reading, having: .jobs, warns: false).isEmpty) == false
  }

  /// Whether a command that names no spool is about the person's gets.
  static var isAboutGets: Bool { environmentLocation == nil && !isDirectory("spool") }

  private static var environmentLocation: String? {
    guard let value = getenv("SPOOLRUN_SPOOL"), value.pointee != 0 else { return nil }
    return String(cString: value)
  }

  /// - Parameter use: root changes another user's spool only as that user.
  /// - Parameter mayBeCommand: whether `named` is in the position of a command.
  /// - Parameter host: what claims name this host by; nil for its own name.
  static func open(
    _ named: String?, for use: SpoolUse, mayBeCommand: Bool = false, host: String? = nil, settings: [String]? = nil
  ) throws -> Spool {
    let location = named ?? defaultLocation
    try Suggestion.refuse(urlAsSpool: location)
    let looked = use == .reading ? nil : try SpoolOwner.become(of: location)
    let (owner, boot) = WorkerID.current(host: host)
    let (spool, objection): (Spool, String?)
    do throws(SpoolError) {
      spool = try Spool(location, owner: owner, boot: boot, settings: settings)
      objection = try Self.objection(to: spool, for: use, looked)
    } catch {
      let place = escaped(location)
      switch error.errno {
      case .noSuchFileOrDirectory, .notDirectory:
        let origin = named == nil && environmentLocation == nil ? ", and no other was named" : ""
        // Perhaps a misspelled command, such as `spoolrun statsu`.
        let isPath = location.utf8.contains(0x2F) || access(location, F_OK) == 0
        let doubt = mayBeCommand && !isPath ? "; there is no command of this name either" : ""
        let gets = origin.isEmpty ? "" : "; what a `spoolrun get` has fetched, the same command checks"
        let isFile =
          error.errno == .notDirectory && fileStatus(at: location).map { $0.st_mode & S_IFMT == S_IFREG } ?? false
        let advice =
          isFile
          ? "of a file, `spoolrun explain NAME` in its directory tells where a `get` has it from"
          : "create one with `spoolrun init \(ShellWords.quoted(location))`\(gets)\(doubt)"
        throw ExitStatus.noSpool.after("\(place): no spool there\(origin) (\(error.path): \(error.errno)); \(advice)")
      case .permissionDenied:
        let whose = looked.map { " (as user \($0.st_uid), its owner)" } ?? ""
        throw ExitStatus.noSpool.after("\(place): \(error.errno)\(whose): \(obstacle(location))")
      default: throw ExitStatus.inputOutput.after("\(place): \(error)")
      }
    }
    guard let objection else { return spool }
    throw ExitStatus.noSpool.after("\(escaped(location)): \(objection)")
  }

  /// The spools of a command about jobs: the one that is named, by the command line or the environment, or `spool`, or
  /// those of the person's gets.
  /// - Parameter mayBeNone: whether the command has something to do, too, if none of the gets has left a spool.
  static func openAll(
    _ named: String?, for use: SpoolUse, having content: GetContent = .undone, mayBeNone: Bool = false
  ) throws -> [Spool] {
    if let location = named ?? environmentLocation {
      if let own = try OwnSpools.open(location, for: use) { return [own] }
    } else if isAboutGets {
      let own = try OwnSpools.open(for: use, having: content)
      if use.changesJobs, !own.isEmpty {
        let places = own.map { escaped($0.location) }.joined(separator: ", ")
        Terminal.error(
          "no spool is named, so this is about your gets: \(places); `spoolrun get` in its directory goes on with one",
          .info)
      }
      if !own.isEmpty || mayBeNone { return own }
    }
    return [try open(named, for: use)]
  }

  /// Why the spool that is open must not be used so: only now is it certain which one that is.
  private static func objection(to spool: Spool, for use: SpoolUse, _ looked: stat?) throws(SpoolError) -> String? {
    if let looked, !spool.isDirectory(device: UInt64(looked.st_dev), inode: UInt64(looked.st_ino), owner: looked.st_uid)
    {
      return "another spool has taken its place at this moment: try again"
    }
    return use.changesJobs ? try spool.stranger() : nil
  }

  /// Why `location` cannot be entered.
  private static func obstacle(_ location: String) -> String {
    guard let status = fileStatus(at: location) else { return "a directory above the spool cannot be entered" }
    return status.st_uid == geteuid()
      ? "the spool's mode does not let its owner read and enter it" : "the spool belongs to another user"
  }
}

extension Spool {
  /// Root makes no file in a spool of another user, whose owner could have it made elsewhere.
  func learnClockToRead() {
    if geteuid() == 0 { do throws(SpoolError) { if try stranger() != nil { return } } catch { return } }
    try? learnClock()
  }
}

struct SpoolOption: ParsableArguments {
  @Option(
    help: ArgumentHelp("The spool directory. (default: $SPOOLRUN_SPOOL, else spool)", valueName: "spool"),
    completion: .directory) var spool: String?

  func open(for use: SpoolUse = .changing) throws -> Spool { try SpoolOpening.open(spool, for: use) }

  func openAll(for use: SpoolUse = .changing, having content: GetContent = .undone) throws -> [Spool] {
    try SpoolOpening.openAll(spool, for: use, having: content)
  }

  /// The same, and for each name what gets have fetched that it means; without names, what they have fetched into the
  /// current directory. Then there may be no spool at all.
  func openAllAndFetched(
    _ names: [String], for use: SpoolUse = .reading
  ) throws -> (spools: [Spool], fetched: [[GetRecords.Fetched]]) {
    var paths = FetchedPaths()
    let isAboutGets = spool == nil && SpoolOpening.isAboutGets
    // First of all, root becomes the person.
    if isAboutGets, use != .reading, PersonalSpool.location != nil { _ = try PersonalSpool.become(ownerOf: nil) }
    let fetched = try (names.isEmpty ? ["."] : names).map { name in
      isAboutGets || spool == nil && name.utf8.contains(UInt8(ascii: "/")) ? try paths.files(at: name) : []
    }
    if !names.isEmpty, fetched.allSatisfy({ !$0.isEmpty }) { return ([], fetched) }
    let mayBeNone = try isAboutGets && !paths.files(at: ".").isEmpty
    return (try SpoolOpening.openAll(spool, for: use, having: .jobs, mayBeNone: mayBeNone), fetched)
  }
}

/// The spool as an argument, or with --spool as in the commands whose arguments are names of jobs.
struct SpoolArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp("The spool directory. (default: $SPOOLRUN_SPOOL, else spool)", valueName: "spool"),
    completion: .directory) var place: String?

  @OptionGroup var option: SpoolOption

  func validate() throws { if place != nil, option.spool != nil { throw ValidationError("the spool is named twice") } }

  var location: String? { place ?? option.spool }

  func open(for use: SpoolUse = .changing, mayBeCommand: Bool = false, host: String? = nil) throws -> Spool {
    try SpoolOpening.open(location, for: use, mayBeCommand: mayBeCommand && place != nil, host: host)
  }
}

/// A spool where a command expects the names of jobs: `spoolrun hold SPOOL NAME`, as with the commands that take a
/// spool there.
enum NamedSpool {
  /// Call this before the command changes anything.
  /// - Parameter option: the spool of `--spool`; with it, all names are those of jobs.
  static func refuse(among names: [String], of command: String, _ option: SpoolOption) throws {
    guard option.spool == nil, let name = names.first(where: { isSpool($0) && !isJob($0) }) else { return }
    throw ExitStatus.usage.after(
      "\(escaped(name)) is a spool, and no job of this name is there: "
        + "`spoolrun \(command) --spool \(ShellWords.quoted(name))` names a spool; nothing is done")
  }

  static func isSpool(_ path: String) -> Bool {
    [Directory.new, .cur, .tmp].allSatisfy { isDirectory("\(path)/\($0.rawValue)") }
  }

  private static func isJob(_ name: String) -> Bool {
    let (owner, boot) = WorkerID.current()
    // A spool that cannot be opened is reported by the command itself.
    guard let spool = try? Spool(SpoolOpening.defaultLocation, owner: owner, boot: boot),
      let place = try? JobSearch(spool).splitClaim(Array(name.utf8))
    else { return false }
    return (try? JobSearch(spool).places(of: place.1).isEmpty) == false
  }
}

/// The names of jobs that a shell offers for a command's arguments.
enum JobNameCompletion {
  /// More than these help nobody, and reading on would keep the shell waiting.
  private static let most = 1000

  static let kind = CompletionKind.custom { (words: [String], _: Int, prefix: String) -> [String] in
    let codes = words.contains("explain") ? FailureExplanation.all.map(\.code).filter { $0.begins(with: prefix) } : []
    return (codes + names(words, Array(prefix.utf8))).map(word)
  }

  /// As the shell's script reads it. Strangers choose these names: that of bash(1) has `compgen -W` expand them, and
  /// with them commands that are not in quotes. That of zsh(1) takes what is behind a colon for a description.
  private static func word(_ name: String) -> String {
    switch CompletionShell.requesting {
    case .bash?: "'" + name.replacing { scalar in scalar == "'" ? "'\\''" : nil } + "'"
    case .zsh?: name.replacing { scalar in scalar == ":" || scalar == "\\" ? "\\\(scalar)" : nil }
    default: name
    }
  }

  private static func names(_ words: [String], _ prefix: [UInt8]) -> [String] {
    let (owner, boot) = WorkerID.current()
    // A shell that completes has no place for an error.
    let named = try? Spool(location(words), owner: owner, boot: boot)
    let spools = named.map { [$0] } ?? (try? OwnSpools.open(for: .reading, having: .jobs, warns: false)) ?? []
    let found = Set(spools.flatMap { names(in: $0, words, prefix) })
    return found.sorted().map { String(decoding: $0.bytes, as: UTF8.self) }
  }

  private static func names(in spool: Spool, _ words: [String], _ prefix: [UInt8]) -> [FileName] {
    func offered(_ names: [FileName]) -> [FileName] {
      names.filter { $0.bytes.starts(with: prefix) && JobName($0) != nil && canBeTyped($0) }
    }
    // Of these two, all that are not done.
    let others = words.contains("url") || words.contains("wait") ? Gesture.cancel : nil
    if let gesture = words.lazy.compactMap({ word in Gesture.allCases.first { $0.command == word } }).first ?? others {
      let jobs = (try? Steering(spool).jobs(for: gesture, in: gesture.sources)) ?? []
      return Array(offered(jobs.map(\.name)).prefix(most))
    }
    let tells = words.contains("status") || words.contains("explain")
    var found: [FileName] = []
    for directory in tells ? Directory.ofJobs.filter({ $0 != .done }) + [.done] : [.done] where found.count < most {
      let names = (try? spool.list(directory)) ?? []
      found += offered(directory == .cur ? names.compactMap { ClaimName($0)?.job.fileName } : names)
    }
    return Array(found.prefix(most))
  }

  /// A name that is not UTF-8 cannot be passed on, and one with a leading dash would be an option.
  private static func canBeTyped(_ name: FileName) -> Bool {
    guard let text = String(validating: name.bytes, as: UTF8.self), !text.begins(with: "-") else { return false }
    return !text.unicodeScalars.contains { $0 != "\\" && isUnsafeForDisplay($0) }
  }

  private static func location(_ words: [String]) -> String {
    for (index, word) in words.enumerated() {
      if word == "--spool", index + 1 < words.count { return words[index + 1] }
      if word.begins(with: "--spool=") { return String(word.dropFirstBytes("--spool=".utf8.count)) }
    }
    return SpoolOpening.defaultLocation
  }
}
