internal import ArgumentParser
internal import Glibc
internal import Spool
internal import SpoolStatus
internal import SpoolWorker
internal import SystemPackage
internal import Transfer

/// The schemes of URLs that a spool's worker takes. Others are refused before a drop.
struct AllowedSchemes {
  /// Those that a worker allows without `--protocols`.
  static let standard = Set(WorkerOptions().protocols.map(\.rawValue))
  /// For a command that runs its jobs itself.
  static let all = AllowedSchemes(names: Set(Scheme.allCases.map(\.rawValue)))

  private let names: Set<String>

  private init(names: Set<String>) { self.names = names }

  /// The schemes in `list`, which commas separate; nil if one of them is unknown.
  static func parse(_ list: String) -> Set<Scheme>? {
    let schemes = list.split(at: ",").map { Scheme(rawValue: $0.lowercasedASCII) }
    return schemes.contains(nil) ? nil : Set(schemes.compactMap { $0 })
  }

  /// If they cannot be known, the worker decides.
  init(of spool: Spool) {
    let names = try? spool.isBesideFiles ? nil : SchemeNote(spool).read() ?? Self.standard
    self = names.map(Self.init(names:)) ?? .all
  }

  /// Notes for `add`, which refuses other schemes, what the spool's worker allows.
  static func note(_ schemes: Set<Scheme>, in spool: Spool, isVerbose: Bool) {
    let names = Set(schemes.map(\.rawValue))
    // Whoever may drop jobs may read it.
    let mask = umask(0o022)
    defer { umask(mask) }
    do throws(SpoolError) {
      try SchemeNote(spool).write(names == standard ? nil : names)
    } catch {
      // Only `add` needs it. What keeps jobs from running is reported where it does so.
      if isVerbose { Terminal.error("the allowed schemes cannot be written to SPOOL/protocols: \(error)", .warning) }
    }
  }

  func check(_ urls: [String]) throws {
    let schemes = urls.compactMap { try? URLParts($0).scheme }
    guard let refusal = schemes.lazy.compactMap({ refusal(of: $0) }).first else { return }
    throw ExitStatus.usage.after(refusal)
  }

  /// Why a URL is refused; nil where it is not.
  func refusal(of scheme: Scheme) -> String? {
    if names.contains(scheme.rawValue) { return nil }
    return """
      the scheme \(scheme) is not enabled in this spool, only \(names.sorted().joined(separator: ", ")): start its \
      worker with --protocols \(names.union([scheme.rawValue]).sorted().joined(separator: ",")) first
      """
  }
}

/// Tells a person whose jobs nobody runs how to start a worker.
enum MissingWorker {
  static func tell(of spool: Spool) throws {
    guard Terminal.isErrorTerminal else { return }
    let isNone = try ExitStatus.reporting("it is not known whether a worker runs") {
      // A user who may only drop jobs is not told.
      try orNil(WorkerFiles(spool).living(), on: .permissionDenied)?.isEmpty
    }
    if isNone != true { return }
    if spool.isBesideFiles { return Terminal.say("the `spoolrun get` that was given before goes on with it") }
    let place = ShellWords.quoted(spool.location)
    Terminal.say("no worker runs: `spoolrun --once \(place)` runs what is due, `spoolrun \(place)` stays and runs all")
  }
}

extension WorkerOptions {
  /// Takes in what the spool's `defaults` say, and prints what a person should know of it.
  /// - Parameter authorities: of `--cacert`, which takes the place of `cacert:`.
  /// - Parameter login: what takes the place of `netrc:` and `proxy:`.
  mutating func takeDefaults(of spool: Spool, authorities: String?, _ login: NetworkKeys? = nil) throws {
    let name = "\(escaped(spool.settingsLocation))/defaults"
    do {
      defaults = try spool.defaults()
      networkKeys = login ?? networkKeys
      defaults.network = defaults.network.replaced(by: networkKeys)
      network = try defaults.networkOptions(of: spool) {
        Terminal.error(login?.netrc == nil ? "\(name): \($0)" : $0, .warning)
      }
    } catch let defect as Defect where defect.line == nil && login != nil {
      throw ExitStatus.configuration.after("--\(defect)")
    } catch {
      throw ExitStatus.configuration.after("\(name): \(error)")
    }
    guard let authorities else { return }
    guard access(authorities, R_OK) == 0 else {
      throw ExitStatus.configuration.after("--cacert \(escaped(authorities)): \(Errno(rawValue: Glibc.errno))")
    }
    self.authorities = authorities
    network.authorities = authorities
  }

  /// Tries the spool's file system, and agrees with the spool's other workers on the lease.
  /// - Parameter lease: as a person wrote it; nil for that of the others.
  mutating func prepareSharing(of spool: Spool, lease: String? = nil, isVerbose: Bool) throws {
    fileSystem = try fileSystem ?? Fitness.traits(for: spool, isVerbose: isVerbose)
    let place = escaped(spool.location)
    do {
      try Leases(spool).agree(on: lease.flatMap { duration($0) }.map { Int64($0) })
    } catch let error as SpoolError {
      // Without a wish, a worker can run in a spool that it cannot write to now, such as one on a full disk.
      if lease != nil || isVerbose { Terminal.error("\(place): the lease cannot be agreed on: \(error)", .warning) }
      if lease != nil { throw ExitStatus(error, on: spool.kind).code }
    } catch {
      throw ExitStatus.configuration.after("\(place): \(error)")
    }
  }
}

/// Whether workers can use a spool where it is.
enum Fitness {
  /// What a worker that starts there finds out. A file system that cannot be tried now, such as a full one, is not
  /// unfit: the worker reports what keeps its jobs from running.
  static func traits(for spool: Spool, isVerbose: Bool) throws -> FileSystemTraits? {
    let place = escaped(spool.location)
    let traits: FileSystemTraits
    do throws(SpoolError) { traits = try FileSystemTrial(spool).run() } catch {
      if isVerbose { Terminal.error("\(place): its file system cannot be tried: \(error)", .warning) }
      return nil
    }
    guard traits.obstacles.isEmpty else {
      let reasons = traits.obstacles.joined(separator: "; ")
      Terminal.error("\(place): its file system (\(traits.type)) is unfit: \(reasons); see `spoolrun doctor`", .warning)
      throw ExitStatus.configuration.code
    }
    return traits
  }
}

extension Libcurl {
  static func loadOrExit() throws {
    do throws(TransferError) { try load() } catch {
      throw ExitStatus.unavailable.after(error.description)
    }
  }
}
