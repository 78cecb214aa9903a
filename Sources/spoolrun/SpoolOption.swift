internal import ArgumentParser
internal import CLinux
internal import Glibc
internal import Spool
internal import SystemPackage

/// Finds and opens the spool of a command.
enum SpoolOpening {
  /// The spool named by SPOOLRUN_SPOOL, else `spool` in the current directory.
  static var defaultLocation: String { environmentLocation ?? "spool" }

  private static var environmentLocation: String? {
    guard let value = getenv("SPOOLRUN_SPOOL"), value.pointee != 0 else { return nil }
    return String(cString: value)
  }

  /// - Parameters:
  ///   - named: the spool on the command line; nil if there is none.
  ///   - use: root changes another user's spool only as that user.
  ///   - mayBeCommand: whether `named` is in the position of a command.
  ///   - host: what claims name this host by; nil for its own name.
  /// - Throws: the exit status, after a message on stderr.
  static func open(_ named: String?, for use: SpoolUse, mayBeCommand: Bool = false, host: String? = nil) throws
    -> Spool
  {
    let location = named ?? defaultLocation
    if mayBeCommand, location.utf8.contains("://".utf8) {
      Terminal.error(Suggestion.forURL)
      throw ExitStatus.usage.code
    }
    let looked = use == .reading ? nil : try SpoolOwner.become(of: location)
    let (owner, boot) = WorkerID.current(host: host)
    let (spool, objection): (Spool, String?)
    do throws(SpoolError) {
      spool = try Spool(location, owner: owner, boot: boot)
      objection = try Self.objection(to: spool, for: use, looked)
    } catch {
      let place = escaped(location)
      switch error.errno {
      case .noSuchFileOrDirectory, .notDirectory:
        let origin = named == nil && environmentLocation == nil ? ", and no other was named" : ""
        // Perhaps a misspelled command, such as `spoolrun statsu`.
        let isPath = location.utf8.contains(0x2F) || access(location, F_OK) == 0
        let doubt = mayBeCommand && !isPath ? "; there is no command of this name either" : ""
        let advice = "create one with `spoolrun init \(place)`\(doubt)"
        Terminal.error("\(place): no spool there\(origin) (\(error.path): \(error.errno)); \(advice)")
        throw ExitStatus.noSpool.code
      case .permissionDenied:
        let whose = looked.map { " (as user \($0.st_uid), its owner)" } ?? ""
        Terminal.error("\(place): \(error.errno)\(whose): \(obstacle(location))")
        throw ExitStatus.noSpool.code
      default:
        Terminal.error("\(place): \(error)")
        throw ExitStatus.inputOutput.code
      }
    }
    guard let objection else { return spool }
    Terminal.error("\(escaped(location)): \(objection)")
    throw ExitStatus.noSpool.code
  }

  /// Why the spool that is open must not be used so: only now is it certain which one that is.
  private static func objection(to spool: Spool, for use: SpoolUse, _ looked: stat?) throws(SpoolError) -> String? {
    if let looked,
      !spool.isDirectory(device: UInt64(looked.st_dev), inode: UInt64(looked.st_ino), owner: looked.st_uid)
    {
      return "another spool has taken its place at this moment: try again"
    }
    return use == .changing ? try spool.stranger() : nil
  }

  /// Why `location` cannot be entered.
  private static func obstacle(_ location: String) -> String {
    var status = stat()
    guard stat(location, &status) == 0 else { return "a directory above the spool cannot be entered" }
    return status.st_uid == geteuid()
      ? "the spool's mode does not let its owner read and enter it" : "the spool belongs to another user"
  }
}

struct SpoolOption: ParsableArguments {
  @Option(
    name: .long,
    help: ArgumentHelp("The spool directory. (default: $SPOOLRUN_SPOOL, else spool)", valueName: "spool"),
    completion: .directory)
  var spool: String?

  func open(for use: SpoolUse = .changing) throws -> Spool { try SpoolOpening.open(spool, for: use) }
}

/// The spool as an argument, or with --spool as in the commands whose arguments are names of jobs.
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

  func open(for use: SpoolUse = .changing, mayBeCommand: Bool = false, host: String? = nil) throws -> Spool {
    try SpoolOpening.open(location, for: use, mayBeCommand: mayBeCommand && place != nil, host: host)
  }
}
