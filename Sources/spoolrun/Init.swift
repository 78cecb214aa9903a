internal import ArgumentParser
internal import Glibc
internal import Spool
internal import SystemPackage

struct Init: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "init",
    abstract: "Creates a spool directory.",
    discussion: "Leaves existing files and directories unchanged, so it is safe to run again.")

  @OptionGroup var spool: SpoolArgument

  func run() throws {
    umask(0o077)
    let location = spool.location ?? SpoolOpening.defaultLocation
    try SpoolOwner.become(of: location)
    do throws(SpoolError) {
      try Spool.create(location)
    } catch {
      let hint = error.errno == .noSuchFileOrDirectory ? ": its parent directory must exist" : ""
      Terminal.error("\(escaped(location)) cannot be created: \(error)\(hint)")
      throw ExitStatus.cannotCreate.code
    }
    let traits = try Fitness.traits(for: SpoolOpening.open(location, for: .changing), isVerbose: true)
    for limit in traits?.limits ?? [] { Terminal.error("\(escaped(location)): \(limit)") }
  }
}
