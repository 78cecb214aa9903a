internal import ArgumentParser
internal import Glibc
internal import Spool
internal import SpoolStatus
internal import SystemPackage

struct Doctor: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor", abstract: "Tries the file system of a spool.",
    discussion: """
      Prints what the file system can do, and whether it is fit, fit with limits, or unfit. Harmless to workers that \
      run. With --peer, also tries what another mount of the same spool shows, as another host would have it.
      """)

  @Option(
    help: ArgumentHelp("The same spool on another mount, to try the two together.", valueName: "dir"),
    completion: .directory) var peer: String?

  @OptionGroup var spool: SpoolArgument

  func run() throws {
    umask(0o077)
    let spool = try self.spool.open(for: .dropping)
    let traits = try ExitStatus.reporting("\(escaped(spool.location)): its file system cannot be tried") {
      try FileSystemTrial(spool).run()
    }
    Terminal.print("\(escaped(spool.location)): \(traits.type)")
    Self.print(traits.lines)
    var (limits, obstacles) = (traits.limits, traits.obstacles)
    if let peer, obstacles.isEmpty {
      let other = try SpoolOpening.open(peer, for: .reading)
      let found = try ExitStatus.reporting("\(escaped(peer)): cannot be tried") { try PeerTrial(spool, other).run() }
      Terminal.print("\(escaped(peer)):")
      Self.print(found.lines)
      limits += found.limits
      obstacles += found.obstacles
    }
    Terminal.print(!obstacles.isEmpty ? "unfit:" : limits.isEmpty ? "fit" : "fit with limits:")
    for reason in obstacles.isEmpty ? limits : obstacles { Terminal.print("  \(reason)") }
    if !obstacles.isEmpty { throw ExitStatus.configuration.code }
  }

  private static func print(_ lines: [(name: String, value: String)]) {
    for line in lines { Terminal.print("  \(padded(line.name, to: 15)) \(line.value)") }
  }
}

struct Init: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "init", abstract: "Creates a spool directory.",
    discussion: "Leaves existing files and directories unchanged, so it is safe to run again.")

  @OptionGroup var spool: SpoolArgument

  func run() throws {
    umask(0o077)
    let location = spool.location ?? SpoolOpening.defaultLocation
    try Suggestion.refuse(urlAsSpool: location)
    try SpoolOwner.become(of: location)
    let isThere = NamedSpool.isSpool(location)
    do throws(SpoolError) {
      try Spool.create(location)
    } catch {
      let hint = error.errno == .noSuchFileOrDirectory ? ": its parent directory must exist" : ""
      throw ExitStatus.cannotCreate.after("\(escaped(location)) cannot be created: \(error)\(hint)")
    }
    let traits = try Fitness.traits(for: SpoolOpening.open(location, for: .changing), isVerbose: true)
    let place = escaped(location)
    for limit in traits?.limits ?? [] { Terminal.error("\(place): \(limit)") }
    let word = ShellWords.quoted(location)
    Terminal.say(
      "\(place) is a spool\(isThere ? " already; nothing is changed" : ""): "
        + "`spoolrun add --spool \(word) URL` drops a job, `spoolrun --once \(word)` runs what is due")
  }
}
