"""The live figures of the explorer, as Bokeh draws them."""
