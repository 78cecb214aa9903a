internal import ArgumentParser
internal import Glibc
internal import Spool
internal import SystemPackage

struct Init: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Makes a spool directory.",
    discussion: "What is there already stays as it is, so it is safe to call again.")

  @OptionGroup var spool: SpoolArgument

  func run() throws {
    umask(0o077)
    let location = spool.location ?? SpoolOpening.defaultLocation
    do throws(SpoolError) {
      try Spool.create(location)
    } catch {
      let hint = error.errno == .noSuchFileOrDirectory ? ": the directory above it has to be there" : ""
      Terminal.error("\(escaped(location)) cannot be made: \(error)\(hint)")
      throw ExitStatus.cannotCreate.code
    }
  }
}
