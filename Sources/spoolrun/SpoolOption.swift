internal import ArgumentParser
internal import Glibc
internal import Spool
internal import SystemPackage

/// Finds and opens the spool that a command is about.
enum SpoolOpening {
  /// The spool named by SPOOLRUN_SPOOL, else `spool` here.
  static var defaultLocation: String {
    guard let value = getenv("SPOOLRUN_SPOOL"), value.pointee != 0 else { return "spool" }
    return String(cString: value)
  }

  /// - Throws: the exit status for what is wrong, after a message on stderr.
  static func open(_ location: String) throws -> Spool {
    let (owner, boot) = Spool.currentWorker()
    do throws(SpoolError) {
      return try Spool(location, owner: owner, boot: boot)
    } catch {
      let place = escaped(location)
      switch error.errno {
      case .noSuchFileOrDirectory, .notDirectory:
        Terminal.error("\(place): no spool there (\(error.path): \(error.errno)); `spoolrun init \(place)` makes one")
        throw ExitStatus.noSpool.code
      case .permissionDenied:
        Terminal.error("\(place): \(error.errno): the spool belongs to another user")
        throw ExitStatus.noSpool.code
      default:
        Terminal.error("\(place): \(error)")
        throw ExitStatus.inputOutput.code
      }
    }
  }
}

struct SpoolOption: ParsableArguments {
  @Option(
    name: .long,
    help: ArgumentHelp("The spool directory. (default: $SPOOLRUN_SPOOL, else spool)", valueName: "spool"),
    completion: .directory)
  var spool: String?

  func open() throws -> Spool { try SpoolOpening.open(spool ?? SpoolOpening.defaultLocation) }
}
