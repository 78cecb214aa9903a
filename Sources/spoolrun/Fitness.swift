internal import Spool
internal import SpoolWorker

/// Whether workers can use a spool where it is.
struct Fitness {
  var limits: [String]
  var obstacles: [String]

  var lines: [String] {
    if !obstacles.isEmpty { return ["unfit:"] + obstacles.map { "  \($0)" } }
    return limits.isEmpty ? ["fit"] : ["fit with limits:"] + limits.map { "  \($0)" }
  }

  /// What a worker that starts there finds out. A file system that cannot be tried now, such as a full one, is not
  /// unfit: the worker reports what keeps its jobs from running.
  /// - Parameter isVerbose: whether to say that it cannot be tried.
  /// - Throws: the exit status, after a message, where it is unfit.
  static func traits(for spool: Spool, isVerbose: Bool) throws -> FileSystemTraits? {
    let place = escaped(spool.location)
    let traits: FileSystemTraits
    do throws(SpoolError) { traits = try spool.tryFileSystem() } catch {
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

extension WorkerOptions {
  /// Tries the spool's file system, and agrees with the spool's other workers on the lease.
  /// - Parameter lease: as a person wrote it; nil for that of the others.
  /// - Throws: the exit status, after a message, if the file system is unfit, or the others have another lease.
  mutating func prepareSharing(of spool: Spool, lease: String? = nil, isVerbose: Bool) throws {
    fileSystem = try Fitness.traits(for: spool, isVerbose: isVerbose)
    let place = escaped(spool.location)
    do {
      try spool.agreeOnLease(lease.flatMap { duration($0) }.map { Int64($0) })
    } catch let error as SpoolError {
      // Without a wish, a worker can run in a spool that it cannot write to now, such as one on a full disk.
      if lease != nil || isVerbose { Terminal.error("\(place): the lease cannot be agreed on: \(error)", .warning) }
      if lease != nil { throw ExitStatus(error, on: spool.kind).code }
    } catch {
      Terminal.error("\(place): \(error)")
      throw ExitStatus.configuration.code
    }
  }
}
