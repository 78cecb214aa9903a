internal import ArgumentParser
internal import Spool
internal import SpoolWorker
internal import SystemPackage

/// The exit statuses of spoolrun(1); those from 64 on are sysexits(3)'s.
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

  /// The worst outcome of a run: what keeps it from fetching at all, the spool's own trouble, then a job given up, then one that waits.
  init(_ summary: RunSummary) {
    if summary.obstacle != nil {
      self = .unavailable
    } else if let error = summary.spoolError {
      self = ExitStatus(error)
    } else if summary.givenUp > 0 {
      self = .givenUp
    } else if summary.waiting > 0 {
      self = .waiting
    } else {
      self = .success
    }
  }

  init(_ error: SpoolError) {
    switch (error.call, error.errno) {
    // A disk that fails is one trouble, whichever call meets it first.
    case (_, .ioError): self = .inputOutput
    case (.create, _), (.mkdir, _): self = .cannotCreate
    default: self = .inputOutput
    }
  }
}
