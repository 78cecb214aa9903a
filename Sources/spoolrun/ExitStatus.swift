internal import ArgumentParser
internal import Spool
internal import SpoolWorker
internal import SystemPackage

/// The exit statuses of spoolrun(1). Those from 64 on are from sysexits(3).
enum ExitStatus: Int32 {
  case success = 0
  case givenUp = 1
  case usage = 64
  case noSpool = 66
  case unavailable = 69
  case cannotCreate = 73
  case inputOutput = 74
  case waiting = 75
  case configuration = 78

  var code: ExitCode { ExitCode(rawValue) }

  /// The worst outcome of a run. From the worst: nothing can be fetched at all, the spool fails, a job was given up, a
  /// job waits.
  /// - Parameter kind: the type of the spool's file system.
  init(_ summary: RunSummary, on kind: FileSystemKind) {
    if summary.obstacle != nil {
      self = .unavailable
    } else if let error = summary.spoolError {
      self = ExitStatus(error, on: kind)
    } else if summary.givenUp > 0 {
      self = .givenUp
    } else if summary.waiting > 0 {
      self = .waiting
    } else {
      self = .success
    }
  }

  /// Of a worker: a file system that cannot be reached may be mounted again.
  init(_ error: SpoolError, on kind: FileSystemKind) {
    self = error.isOfLostMount(on: kind) ? .waiting : ExitStatus(error)
  }

  init(_ error: SpoolError) {
    switch (error.call, error.errno) {
    // A failing disk has one status, whichever call finds it first.
    case (_, .ioError): self = .inputOutput
    case (.create, _), (.mkdir, _): self = .cannotCreate
    default: self = .inputOutput
    }
  }
}
