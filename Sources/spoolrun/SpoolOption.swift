internal import ArgumentParser
internal import Glibc
internal import Spool
internal import SystemPackage

/// Finds and opens the spool that a command is about.
enum SpoolOpening {
  /// The spool named by SPOOLRUN_SPOOL, else `spool` here.
  static var defaultLocation: String { environmentLocation ?? "spool" }

  private static var environmentLocation: String? {
    guard let value = getenv("SPOOLRUN_SPOOL"), value.pointee != 0 else { return nil }
    return String(cString: value)
  }

  /// - Parameter named: on the command line.
  /// - Throws: the exit status for what is wrong, after a message on stderr.
  static func open(_ named: String?) throws -> Spool {
    let location = named ?? defaultLocation
    let (owner, boot) = Spool.currentWorker()
    do throws(SpoolError) {
      return try Spool(location, owner: owner, boot: boot)
    } catch {
      let place = escaped(location)
      switch error.errno {
      case .noSuchFileOrDirectory, .notDirectory:
        let origin = named == nil && environmentLocation == nil ? ", and no other was named" : ""
        // `spoolrun statsu`, perhaps.
        let doubt = named != nil && !location.utf8.contains(0x2F) ? "; no command is called so either" : ""
        Terminal.error(
          "\(place): no spool there\(origin) (\(error.path): \(error.errno)); `spoolrun init \(place)` makes one\(doubt)"
        )
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

  func open() throws -> Spool { try SpoolOpening.open(spool) }
}
