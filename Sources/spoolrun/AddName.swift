internal import ArgumentParser
internal import Spool
internal import Transfer

extension Add {
  /// The name of the job's file: `--name`, or else made of its output or URL.
  func jobName(_ request: JobRequest) throws -> JobName {
    if let name {
      let fileName = FileName(RawArguments.bytes(of: [name])[0])
      guard let job = JobName(fileName) else {
        throw ValidationError("--name: \(JobName.defect(of: fileName) ?? "its name starts with a dot")")
      }
      return job
    }
    return JobName(like: request.outputText(named: urls.first.flatMap { try? URLParts($0) }?.lastPathSegment) ?? "")
  }
}
