internal import CLinux
internal import Spool
internal import SystemPackage
internal import Transfer

extension URLParts {
  /// Whether the host is reached without a network.
  var isLoopback: Bool { host == "localhost" || host.begins(with: "127.") || host == "::1" || host == "[::1]" }
}

extension MirrorURL {
  /// The job's failure for one of a request. The other address family is tried only after a server was reached, so
  /// there is a network.
  func failure(_ failure: TransferFailure, _ manner: FetchPolicy.Manner) -> Failure {
    Failure(failure, isLoopback: parts.isLoopback || manner.family != .any)
  }
}

extension Failure {
  /// The job's failure for an error of the spool.
  init(_ error: SpoolError) {
    switch error.errno {
    case _ where error.isDiskFull:
      self.init(.diskFull, "\(error)")
    case _ where error.isTooLargeHere:
      let limit = spoolrun_file_size_limit()
      self.init(
        .tooLargeHere,
        limit > 0
          ? "\(error): a file may have at most \(limit) bytes (ulimit -f), or less on this file system"
          : "\(error): the file system does not support a file of this size",
        expected: limit > 0 ? "at most \(limit)" : nil)
    case .tooManySymbolicLinkLevels, .notDirectory, .isDirectory, .fileNameTooLong, .improperLink:
      self.init(.badOutput, "the output's path cannot be used: \(error)")
    default:
      self.init(.io, "\(error)")
    }
  }

  /// The same for what was written to the directory of a payload, which a person knows by its path.
  init(_ error: SpoolError, writingTo directory: String) {
    self.init(error)
    let place = "cannot write to \(directory): \(error.errno)"
    switch error.errno {
    case .readOnlyFileSystem: (code, reason) = (.noOutput, "\(place): make its file system writable")
    case .permissionDenied, .notPermitted:
      (code, reason) = (.noOutput, "\(place): let the worker's user write to it")
    case _ where error.isDiskFull: reason = "\(place): make space there"
    default: break
    }
  }

  /// The job's failure for a failure of libcurl.
  init(_ failure: TransferFailure, isLoopback: Bool) {
    let code: FailureCode =
      switch failure.code {
      case .resolve: .resolve
      case .connect: .connect
      case .tls: .tls
      case .proxy: .proxy
      case .stalled: .stalled
      case .timeout: .timeout
      case .cut: .cut
      case .shortBody: .shortBody
      case .redirect: .redirect
      case .protocolNotEnabled: .protocol
      case .badURL: .malformed
      case .badResponse, .surplus: .badResponse
      case .undecodable: .encoded
      case .outOfMemory, .local: .io
      }
    self.init(code, failure.message + (code == .encoded ? ": try `encoded: keep`" : ""))
    proxy = failure.proxy
    guard !isLoopback, code == .resolve || code == .connect else { return }
    // Not EHOSTUNREACH, which concerns one host only.
    let isUnreachable = [.networkUnreachable, .networkDown].contains(Errno(rawValue: failure.osErrno))
    let network = WorkerLoop.executor.surroundings
    if isUnreachable ? !network.hasRoute() : !network.hasAddress() {
      self.code = .noNetwork
      reason = "no network: \(reason)"
    }
  }
}
