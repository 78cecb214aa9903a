internal import Spool

extension JobEnvironment {
  /// The output root of a job's payload: the worker's own, or the one that the job names.
  /// - Throws: `bad-output` if that is none of the spool's, does not exist, or must not be published to. It is no
  ///   reason to wait, because a job of this worker alone would be claimed again at once.
  func outputs(of plan: JobPlan) throws(Failure) -> CurrentOutputRoot {
    guard let root = plan.request.root else { return outputs }
    do throws(OutputRootProblem) {
      return try CurrentOutputRoot(named: root.text, for: plan.output, spool: spool)
    } catch {
      throw Failure(.badOutput, "root `\(escaped(root.text))`: \(error)", line: root.number)
    }
  }
}
