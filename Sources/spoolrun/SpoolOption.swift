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

  /// - Parameters:
  ///   - named: on the command line.
  ///   - mayBeCommand: it stood where a command could stand.
  /// - Throws: the exit status for what is wrong, after a message on stderr.
  static func open(_ named: String?, mayBeCommand: Bool = false) throws -> Spool {
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
        let isPath = location.utf8.contains(0x2F) || access(location, F_OK) == 0
        let doubt = mayBeCommand && !isPath ? "; no command is called so either" : ""
        Terminal.error(
          "\(place): no spool there\(origin) (\(error.path): \(error.errno)); `spoolrun init \(place)` makes one\(doubt)"
        )
        throw ExitStatus.noSpool.code
      case .permissionDenied:
        Terminal.error("\(place): \(error.errno): \(obstacle(location))")
        throw ExitStatus.noSpool.code
      default:
        Terminal.error("\(place): \(error)")
        throw ExitStatus.inputOutput.code
      }
    }
  }

  /// Why `location` may not be entered.
  private static func obstacle(_ location: String) -> String {
    var status = stat()
    guard stat(location, &status) == 0 else { return "the way to the spool may not be entered" }
    return status.st_uid == geteuid()
      ? "the spool may not be read or entered: see its mode" : "the spool belongs to another user"
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

/// The spool by its place on the command line; or by --spool, as the commands have it whose arguments are names.
struct SpoolArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp("The spool directory. (default: $SPOOLRUN_SPOOL, else spool)", valueName: "spool"),
    completion: .directory)
  var place: String?

  @OptionGroup var option: SpoolOption

  func validate() throws {
    if place != nil, option.spool != nil { throw ValidationError("the spool is named twice") }
  }

  var location: String? { place ?? option.spool }

  func open(mayBeCommand: Bool = false) throws -> Spool {
    try SpoolOpening.open(location, mayBeCommand: mayBeCommand && place != nil)
  }
}
