internal import ArgumentParser
internal import CLinux
internal import Glibc
internal import Spool
internal import SpoolWorker
internal import Transfer

/// The keys that options of `get` set. The place of the file is `-o`'s, and its spool has no keys for signatures.
enum GetJobKeys: JobKeySelection {
  static let keys = JobKey.ofJobs.filter { !["url", "output", "root", "signature"].contains($0.name) }

  static func help(_ key: JobKey) -> String {
    key.name == "mode" ? key.help.replacing("(default: 600)", with: "(default: by the umask)") : key.help
  }
}

struct Get: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get",
    abstract: "Downloads files into the current directory, now.",
    discussion: """
      Each URL is one file; with -o FILE, several URLs are mirrors of it. The same command continues an interrupted \
      download, and does nothing if the file is there and is what its receipt says. The jobs are in a spool of your \
      own, $XDG_STATE_HOME/spoolrun or else ~/.local/state/spoolrun; a worker that watches it runs them as well.
      """)

  @Argument(help: ArgumentHelp("URL of a file.", valueName: "url"))
  var urls: [String] = []

  @OptionGroup var list: ListArguments

  @Option(
    name: .shortAndLong,
    help: ArgumentHelp("The file, or the directory/ for it. (default: the URL's last part, here)", valueName: "path"),
    completion: .file())
  var output: String?

  @OptionGroup var job: JobOptions<GetJobKeys>

  @Option(
    name: .customLong("cacert"),
    help: ArgumentHelp("PEM file of the certificate authorities to trust. (default: the system's)", valueName: "file"))
  var caFile: String?

  @OptionGroup var login: LoginOptions

  @Option(help: ArgumentHelp("Show progress bars: auto, always or never.", valueName: "when"))
  var progress = ProgressMode.auto

  @Flag(name: .shortAndLong, help: "Log each step.")
  var verbose = false

  @Flag(
    name: [.customShort("q"), .customShort("s"), .customLong("silent"), .customLong("quiet")],
    help: "Print only what failed.")
  var quiet = false

  @Option(help: ArgumentHelp("The spool for the jobs. (default: your own)", valueName: "spool"), completion: .directory)
  var spool: String?

  func run() throws {
    let signals: Int32
    do { signals = try Terminal.stopSignals() } catch { throw ExitStatus.failure(error, "cannot watch for signals") }
    let location = try PersonalSpool.become(ownerOf: self.spool)
    var items = try GetPlan(urls: login.added(to: urls), list: list, output: output, given: job.given).items()
    let mask = umask(0o077)
    let spool = try PersonalSpool.open(location, isNamed: self.spool != nil)
    do {
      let options = try workerOptions(spool)
      if options.defaults.mode == nil {
        for index in items.indices { items[index].usualMode = PayloadMode(umask: mask) }
      }
      let known = try order(items, in: spool)
      let run = GetRun(
        items, in: spool, options, signals: signals, quiet ? .never : progress,
        verbose ? .steps : quiet ? .failures : .results)
      let status = try run.run(known)
      if status != .success { throw status.code }
    } catch let error as SpoolError {
      throw ExitStatus.failure(error, escaped(spool.location))
    }
  }

  // MARK: getting it

  /// - Returns: how the items ended for which nothing was ordered, by their number.
  private func order(_ items: [GetItem], in spool: Spool) throws -> [Int: GetEnd] {
    var ends: [Int: GetEnd] = [:]
    try Drops(spool).alone {
      for (number, item) in items.enumerated() {
        switch try GetOrder(spool: spool, item: item).place() {
        case .ordered: break
        case .isThere: ends[number] = .isThere
        case .refused(let reason): ends[number] = .refused(reason)
        }
      }
    }
    return ends
  }

  private func workerOptions(_ spool: Spool) throws -> WorkerOptions {
    var options = WorkerOptions()
    // The person has written the scheme. Redirects lead to http and https only.
    options.protocols = Set(Scheme.allCases)
    options.userAgent = "spoolrun/\(Spoolrun.configuration.version)"
    try options.takeDefaults(of: spool, authorities: caFile, login)
    try options.prepareSharing(of: spool, isVerbose: verbose)
    _ = spoolrun_raise_descriptor_limit(UInt64(options.mostDescriptors))
    return options
  }
}

/// The spool of the person who runs `spoolrun get`.
private enum PersonalSpool {
  /// By the XDG Base Directory Specification, section 3: `$XDG_STATE_HOME/spoolrun`, where a relative path does not
  /// count, or else `~/.local/state/spoolrun`; nil without a home directory.
  static func location(_ variable: (String) -> String?) -> String? {
    if let state = variable("XDG_STATE_HOME"), state.begins(with: "/") { return "\(state)/spoolrun" }
    return variable("HOME").flatMap { $0.begins(with: "/") ? "\($0)/.local/state/spoolrun" : nil }
  }

  /// Where it is. Before anything is made, root becomes the user that it belongs to, or would: the owner of the nearest
  /// directory above it.
  static func become(ownerOf named: String?) throws -> String {
    if named == nil { for name in ["XDG_STATE_HOME", "HOME"] { UnreadableText.refuse(variable: name) } }
    guard let location = named ?? location({ name in getenv(name).map { String(cString: $0) } }) else {
      throw ExitStatus.cannotCreate.after("neither XDG_STATE_HOME nor HOME is set: name a spool with --spool")
    }
    var (parts, status) = (location.utf8.split(separator: 0x2F).map { String(Substring($0)) }, stat())
    var nearest: String { (location.begins(with: "/") ? "/" : "./") + parts.joined(separator: "/") }
    while !parts.isEmpty, stat(nearest, &status) != 0 { parts.removeLast() }
    try SpoolOwner.become(of: nearest)
    return location
  }

  /// Opens the spool at `location`; makes it when it is missing.
  /// - Parameter isNamed: whether a person has named it. It may be misspelled, so only its own last part is made.
  static func open(_ location: String, isNamed: Bool) throws -> Spool {
    if !isNamed { makeDirectories(above: location, mode: 0o700) }
    var status = stat()
    if stat("\(location)/\(Directory.files.rawValue)", &status) != 0 {
      do throws(SpoolError) { try Spool.create(location) } catch {
        throw ExitStatus.cannotCreate.after("\(escaped(location)) cannot be created: \(error)")
      }
    }
    return try SpoolOpening.open(location, for: .changing)
  }
}

/// Makes those directories above `path` that are missing. An error shows when what is at `path` is made or opened.
func makeDirectories(above path: String, mode: mode_t) {
  for slash in path.utf8.indices.dropFirst() where path.utf8[slash] == UInt8(ascii: "/") {
    _ = mkdir(String(path[..<slash]), mode)
  }
}
