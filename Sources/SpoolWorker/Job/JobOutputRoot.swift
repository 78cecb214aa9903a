internal import Spool
internal import SystemPackage

extension JobEnvironment {
  /// The output root of a job's payload: the worker's own, or the one that the job names.
  /// - Throws: `bad-output` if that is none of the spool's, does not exist, or must not be published to. It is no
  ///   reason to wait, because a job of this worker alone would be claimed again at once. `io` and the like if the
  ///   system failed: another attempt may succeed.
  func outputs(of plan: JobPlan) throws(Failure) -> CurrentOutputRoot {
    try outputs(of: plan.request, for: plan.output)
  }

  /// The same for a request with this output.
  func outputs(of request: JobRequest, for output: OutputPath) throws(Failure) -> CurrentOutputRoot {
    guard let root = request.root else { return outputs }
    do throws(OutputRootProblem) {
      return try CurrentOutputRoot(named: root.text, for: output, spool: spool)
    } catch {
      if case .missing(let error) = error, !error.isOfPath { throw Failure(error) }
      throw Failure(.badOutput, "root `\(escaped(root.text))`: \(error)", line: root.number)
    }
  }
}

extension JobEnvironment {
  /// The path of a job's output root; nil if it is the spool's `files`, or has gone.
  func directory(of plan: JobPlan) -> String? { (try? outputs(of: plan))?.location }
}

extension SpoolError {
  /// Whether the path of an output root is to blame, which stays so until a person changes it.
  fileprivate var isOfPath: Bool {
    switch errno {
    case .noSuchFileOrDirectory, .notDirectory, .tooManySymbolicLinkLevels, .fileNameTooLong, .invalidArgument,
      .permissionDenied:
      true
    default: false
    }
  }
}
